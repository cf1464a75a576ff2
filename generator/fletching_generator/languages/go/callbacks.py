"""Go: package `callbacks`, which crosses into C and back, and the data that the ABI tests pass.

In Go, a struct argument is a pointer to the struct of package `abi`; other addresses are uintptrs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...reading.types import (
    SCALAR_SIZES,
    Argument,
    Callback,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spec import operations
from ...spec.model import Field, Spec, Struct
from ..c import names as c
from .names import argument_name, function_type, go_name, type_name

_TEXT = Pointer(Scalar("char"), True)
_FAILURES = {"errno": "C.EIO", "NULL": "0", "nothing": "0"}


@dataclass(frozen=True)
class GoCallback:
    """A callback: its Go call, and the Go function that C can call."""

    struct: Struct
    field: Field
    type: Callback

    @property
    def symbol(self) -> str:
        return f"{self.struct.name}_{self.field.name}"

    @property
    def title(self) -> str:
        return f"{self.struct.name}.{self.field.name}"

    @property
    def method(self) -> str:
        return go_name(self.field.name)

    @property
    def name(self) -> str:
        """For example `ArrowArrayRelease`."""
        return f"{self.struct.name}{self.method}"

    @property
    def function_type(self) -> str:
        return f"abi.{function_type(self.struct, self.field)}"

    @property
    def is_void(self) -> bool:
        return self.type.returns == Scalar("void")

    @property
    def takes_self(self) -> bool:
        return operations.takes_self(self.struct, self.field)

    @property
    def failure(self) -> str:
        """The result that C gets after a panic in Go, from the callback's contract."""
        assert self.field.contract is not None
        return _FAILURES.get(str(self.field.contract.failure), str(self.field.contract.failure))

    @property
    def reporter(self) -> tuple[Argument, Argument] | None:
        """The argument that is called with the text of an error, and its first argument."""
        return operations.reporter(self.type)


@dataclass(frozen=True)
class GoStruct:
    """A struct with callbacks, or with an embedded struct whose callback releases it."""

    struct: Struct
    callbacks: tuple[GoCallback, ...]
    release: operations.Release | None

    @property
    def name(self) -> str:
        return self.struct.name

    @property
    def context(self) -> Field | None:
        """The field for a handle. None: the Go functions are one set for the process."""
        return operations.private_data(self.struct)

    @property
    def last_error(self) -> GoCallback | None:
        """The callback that returns the last error message."""
        found = (c for c in self.callbacks if c.field.name == "get_last_error")
        return next((c for c in found if c.type.returns == _TEXT and self.context), None)

    def marks_released(self, callback: GoCallback) -> bool:
        """Returns whether the stub marks the struct first: the release may free its memory."""
        release = self.release
        return release is not None and release.movable and release.field == callback.field

    def keeps_text(self, callback: GoCallback) -> bool:
        """Returns whether get_last_error returns the message for a failure of this callback."""
        return self.last_error is not None and callback.failure == "C.EIO"


def structs(spec: Spec) -> list[GoStruct]:
    found = []
    for struct in spec.structs:
        callbacks = tuple(
            GoCallback(struct, field, field.type)
            for field in struct.fields
            if isinstance(field.type, Callback)
        )
        release = operations.release(spec, struct)
        if callbacks or release:
            found.append(GoStruct(struct, callbacks, release))
    return found


# --- Types -------------------------------------------------------------------------------------


def go_type(type_: Type) -> str:
    """Returns the Go type of an argument or result of a callback."""
    match type_:
        case Pointer(to=StructType(name=name)):
            return f"*abi.{name}"
        case Pointer(to=Pointer()):
            return "*uintptr"
        case Typedef():
            return f"abi.{type_name(type_)}"
        case _:
            return type_name(type_)


def c_type(type_: Type) -> str:
    """Returns the C type of a Go function's parameter; every address is a uintptr_t."""
    match type_:
        case Pointer() | Callback():
            return "uintptr_t"
        case Typedef(scalar=scalar):
            return c_type(scalar)
        case _:
            return c.type_name(type_)


def call_type(type_: Type) -> str:
    """Returns the C type of a value passed by Go. Addresses that may be Go's have a type without
    pointers, so that cgo makes no pointer check."""
    return "uint8_t*" if go_type(type_).startswith("*") else c_type(type_)


def bits(type_: Type) -> str:
    """Returns Go's unsigned type of this width."""
    match type_:
        case Pointer() | Callback():
            return "uintptr"
        case Typedef(scalar=scalar):
            return bits(scalar)
        case Scalar(name=name):
            return f"uint{8 * SCALAR_SIZES[name]}"
        case _:
            raise ValueError(f"{type_} is not an argument")


def c_signature(field: Field) -> str:
    """Returns `int (struct ArrowArrayStream*, struct ArrowArray*)`; empty for data."""
    if not isinstance(field.type, Callback):
        return ""
    parameters = ", ".join(c.type_name(argument.type) for argument in field.type.arguments)
    return f"{c.type_name(field.type.returns)} ({parameters})"


# --- Go calls C --------------------------------------------------------------------------------


def call_parameters(callback: GoCallback) -> str:
    """Returns `self *abi.ArrowArrayStream, out *abi.ArrowArray`; a table precedes the arguments."""
    before = [] if callback.takes_self else [f"table *abi.{callback.struct.name}"]
    return ", ".join(before + [_declare(a) for a in callback.type.arguments])


def call_arguments(callback: GoCallback) -> str:
    return ", ".join(_to_c(a) for a in callback.type.arguments)


def _declare(argument: Argument) -> str:
    return f"{argument_name(argument.name)} {go_type(argument.type)}"


def _to_c(argument: Argument) -> str:
    name = argument_name(argument.name)
    if go_type(argument.type).startswith("*"):
        return f"(*C.uint8_t)(unsafe.Pointer({name}))"
    return f"C.{c_type(argument.type)}({name})"


# --- C calls Go --------------------------------------------------------------------------------


def method_parameters(callback: GoCallback) -> str:
    return ", ".join(_declare(a) for a in callback.type.arguments)


def stub_parameters(callback: GoCallback) -> str:
    names = (f"{argument_name(a.name)} C.{c_type(a.type)}" for a in callback.type.arguments)
    return ", ".join(names)


def stub_arguments(callback: GoCallback) -> str:
    return ", ".join(_from_c(a) for a in callback.type.arguments)


def _from_c(argument: Argument) -> str:
    name, type_ = argument_name(argument.name), go_type(argument.type)
    return f"at[{type_[1:]}](uintptr({name}))" if type_.startswith("*") else f"{type_}({name})"


# --- The ABI tests -----------------------------------------------------------------------------
# Values are passed as in the oracle: their bits, zero-extended to 64.


def to_bits(argument: Argument) -> str:
    name = argument_name(argument.name)
    if go_type(argument.type).startswith("*"):
        return f"address({name})"
    return f"uint64({bits(argument.type)}({name}))"


def from_bits(callback: GoCallback) -> str:
    """Returns the arguments of a call, without the address of the table."""
    types = [go_type(a.type) for a in callback.type.arguments]
    values = [
        f"at[{name[1:]}](a[{i}])" if name.startswith("*") else f"{name}(a[{i}])"
        for i, name in enumerate(types)
    ]
    before = [] if callback.takes_self else [f"(*abi.{callback.struct.name})(object)"]
    return ", ".join(before + values)
