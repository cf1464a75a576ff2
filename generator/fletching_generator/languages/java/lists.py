"""The lists of fields and callbacks for the ABI tests of Java."""

from __future__ import annotations

from dataclasses import dataclass

from ...reading.types import Callback, FixedArray, StructType, Type
from ...spec.layout import Leaf, leaves
from ...spec.model import Field, Spec, Struct
from ...spelling import pascal
from .names import camel, constant, field_type, is_address, is_void, java_type, jna_bytes
from .text import Broken, Call, Node


@dataclass(frozen=True)
class ListedLeaf:
    """One value of a struct, with its accessors."""

    path: str  # "array.length"
    element: int  # 0; 0 to 2 for an array of three
    read: Call  # ArrowArray.getLength(ArrowDeviceArray.getArray(p))
    write: Call  # ArrowArray.setLength(ArrowDeviceArray.getArray(p)), without the value
    type: Type
    owners: tuple[Struct, ...]  # of the fields on the path
    size: Type  # of the whole field


def listed_leaves(spec: Spec, struct: Struct) -> list[ListedLeaf]:
    return [
        _listed(spec, struct, leaf, element)
        for leaf in leaves(spec, struct)
        for element in range(leaf.count)
    ]


def _listed(spec: Spec, struct: Struct, leaf: Leaf, element: int) -> ListedLeaf:
    owner = struct
    place: Node = "p"
    *outer, last = leaf.path.split(".")
    owners = [owner]
    for name in outer:
        place = Call(f"{owner.name}.get{pascal(name)}", [place])
        inner = _field(owner, name).type
        assert isinstance(inner, StructType)
        owner = spec.struct(inner.name)
        owners.append(owner)
    field = _field(owner, last)
    is_array = isinstance(field.type, FixedArray)
    where: list[Node] = [place, str(element)] if is_array else [place]
    read = Call(f"{owner.name}.get{pascal(last)}", where)
    write = Call(f"{owner.name}.set{pascal(last)}", where)
    return ListedLeaf(leaf.path, element, read, write, leaf.type, tuple(owners), field.type)


def _field(struct: Struct, name: str) -> Field:
    return next(field for field in struct.fields if field.name == name)


def list_field(field: Field, flavor: str) -> str:
    size = f", {jna_bytes(field.type)}" if flavor == "jna" else ""
    return f'struct.field("{field.name}"{size})'


def list_leaf(leaf: ListedLeaf, flavor: str) -> Call:
    value = _from_bits(leaf.type, field_type(leaf.type, flavor), "v")
    write = Call(leaf.write.head, [*leaf.write.arguments, value])
    row: list[Node] = [f'"{leaf.path}"', str(leaf.element)]
    row += [Broken("p ->", Call("bits", [leaf.read])), Broken("(p, v) ->", write)]
    if flavor == "jna":  # a layout of java.lang.foreign contains the offsets
        row.insert(2, jna_bytes(leaf.size))
        row += [f"Offsets.{constant(owner.name)}" for owner in leaf.owners]
    return Call("struct.leaf", row)


def list_callback(field: Field, struct: Struct, flavor: str) -> Call:
    callback = field.type
    assert isinstance(callback, Callback)
    function = f"{struct.name}.{pascal(field.name)}"
    own = Broken("call ->", Call(f"{function}.stub", [_recorder(callback, flavor)]))
    sent: list[Node] = [f"{struct.name}.get{pascal(field.name)}(p)"]
    sent += [
        _from_bits(a.type, java_type(a.type, flavor), f"a[{i}]")
        for i, a in enumerate(callback.arguments)
    ]
    call: Node = Call(f"{function}.invoke", sent)
    if not is_void(callback.returns):
        call = Call("bits", [call])
    setter = f"{struct.name}::set{pascal(field.name)}"
    arguments: list[Node] = [f'"{field.name}"', own, setter, Broken("(p, a) ->", call)]
    declared = "class" if flavor == "jna" else "DESCRIPTOR"
    arguments.insert(1, f"{function}.{declared}")
    method = "struct.voidCallback" if is_void(callback.returns) else "struct.callback"
    return Call(method, arguments)


def _recorder(callback: Callback, flavor: str) -> Broken:
    """Returns a callback that reports its arguments and returns the oracle's value."""
    names = [camel(a.name) for a in callback.arguments]
    record: Node = Call("call.record", [f"bits({name})" for name in names])
    java = java_type(callback.returns, flavor)
    if is_address(callback.returns):
        record = Call("pointer", [record])
    elif java not in ("long", "void"):
        record = Broken(f"({java})", record)
    return Broken(f"({', '.join(names)}) ->", record)


def _from_bits(type_: Type, java: str, bits: str) -> str:
    if is_address(type_):
        return f"pointer({bits})"
    return bits if java == "long" else f"({java}) {bits}"
