"""The operations of the structs: move, release, follow a pointer, call a callback.

They are derived from the spec. A struct without a field lacks only the operations that need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..reading.types import Argument, Callback, Pointer, Scalar, StructType, Type
from .model import Field, Spec, Struct

# The names of callbacks that release a struct.
_RELEASE = ("release", "deleter")
# The names of the field for the implementation.
_PRIVATE = ("private_data", "manager_ctx")


@dataclass(frozen=True)
class Release:
    """How a struct is released."""

    field: Field  # the callback, or the embedded struct that has it
    path: tuple[str, ...]  # ("array", "release"): the path of the callback
    # True: NULL marks a released struct. False: a struct that needs no release.
    null_is_released: bool
    # True: the consumer's memory, filled in by the producer. False: the callback may free the
    # struct, which others identify by its address.
    movable: bool

    @property
    def embedded(self) -> bool:
        return isinstance(self.field.type, StructType)


@dataclass(frozen=True)
class Counted:
    """A pointer to a number of values that another field contains."""

    field: Field
    count: Field
    type: Type  # of one value


def release(spec: Spec, struct: Struct) -> Release | None:
    own = Callback((Argument("self", Pointer(StructType(struct.name), False)),), Scalar("void"))
    for field in struct.fields:
        if field.name in _RELEASE and field.type == own:
            movable = (struct.allocated_by, struct.filled_by) == ("consumer", "producer")
            return Release(field, (field.name,), field.presence == "mandatory", movable)
    for field in struct.fields:
        if isinstance(field.type, StructType):
            inner = release(spec, spec.struct(field.type.name))
            if inner and inner.movable:
                path = (field.name, *inner.path)
                return Release(field, path, inner.null_is_released, inner.movable)
    return None


def texts(struct: Struct) -> list[Field]:
    return [f for f in struct.fields if isinstance(f.type, Pointer) and f.type.target == "text"]


def lists(struct: Struct) -> list[Counted]:
    """Returns the pointers with a count: `n_children` of `children`, `ndim` of the other lists."""
    integers = {f.name: f for f in struct.fields if isinstance(f.type, Scalar)}
    found = []
    for field in struct.fields:
        count = integers.get(f"n_{field.name}", integers.get("ndim"))
        if count and isinstance(field.type, Pointer) and field.type.target == "many":
            found.append(Counted(field, count, field.type.to))
    return found


def calls(spec: Spec, struct: Struct) -> list[Field]:
    """Returns the callbacks except the one that `release_once` calls."""
    given_back = release(spec, struct)
    return [f for f in struct.callbacks if given_back is None or f != given_back.field]


def takes_self(struct: Struct, field: Field) -> bool:
    assert isinstance(field.type, Callback)
    arguments = field.type.arguments
    return bool(arguments) and arguments[0].type == Pointer(StructType(struct.name), False)


def reporter(callback: Callback) -> tuple[Argument, Argument] | None:
    """Returns the argument that is called with the texts of an error, and its first argument."""
    own = {argument.name: argument for argument in callback.arguments}
    text = Pointer(Scalar("char"), True)
    for argument in callback.arguments:
        if isinstance(argument.type, Callback):
            context, *texts = argument.type.arguments
            if [a.type for a in texts] == [text, text] and context.name in own:
                return argument, own[context.name]
    return None


def private_data(struct: Struct) -> Field | None:
    """Returns the field through which the callbacks find their object, if all take their struct."""
    if not struct.callbacks or not all(takes_self(struct, field) for field in struct.callbacks):
        return None
    for field in struct.fields:
        if field.name in _PRIVATE and field.type == Pointer(Scalar("void"), False):
            return field
    return None


def last_call(spec: Spec, struct: Struct) -> Field | None:
    """Returns the last callback to be called: the release, or one with exactly one call."""
    given_back = release(spec, struct)
    if given_back:
        return None if given_back.embedded else given_back.field
    once = [f for f in struct.callbacks if f.contract and f.contract.times.startswith("exactly")]
    return once[0] if len(struct.callbacks) == 1 and once else None
