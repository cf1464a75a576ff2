"""Go's spelling of names, types and callbacks of structs."""

from __future__ import annotations

from ...reading.types import (
    SCALAR_SIZES,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spec.model import Device, Enumerator, Field, Struct

_SCALARS = {name: name for name in SCALAR_SIZES} | {"int": "int32", "char": "int8"}
_INITIALISMS = {"dlpack": "DLPack", "id": "ID"}  # words with another capitalization in Go


def go_name(name: str) -> str:
    """Returns NChildren for `n_children`, FlagNullable for `ARROW_FLAG_NULLABLE`."""
    words = name.removeprefix("ARROW_").lower().split("_")
    return "".join(_INITIALISMS.get(word, word.capitalize()) for word in words)


def device_constant(device: Device) -> str:
    """Returns `DeviceCUDAHost`, in the spelling of DLPack, which has a name for every device."""
    return "Device" + device.dlpack.removeprefix("kDL")


def code_constant(code: Enumerator) -> str:
    """Returns `DataTypeFloat8E4M3FN` for kDLFloat8_e4m3fn."""
    stem, _, format_ = code.name.removeprefix("kDL").partition("_")
    return f"DataType{stem}{format_.upper()}"


def type_name(type_: Type) -> str:
    """Returns the Go type of a field; every address is a uintptr."""
    match type_:
        case Scalar(name=name):
            return _SCALARS[name]
        case Typedef(name=name):
            return name.removeprefix("Arrow")
        case StructType(name=name):
            return name
        case FixedArray(of=of, count=count):
            return f"[{count}]{type_name(of)}"
        case Pointer() | Callback():
            return "uintptr"


def function_type(struct: Struct, field: Field) -> str:
    """Returns `ArrowArrayReleaseFunc`: each callback has a distinct type to prevent mix-ups."""
    return f"{struct.name}{go_name(field.name)}Func"


def field_type(field: Field, struct: Struct) -> str:
    """Returns the type of a member of `struct`."""
    return function_type(struct, field) if field.is_callback else type_name(field.type)


def singular(name: str) -> str:
    """Returns Child for `children`, Buffer for `buffers`."""
    return go_name(name.removesuffix("ren").removesuffix("s"))


def argument_name(name: str) -> str:
    """Returns pyObject for `py_object`."""
    words = go_name(name)
    return words[:1].lower() + words[1:]
