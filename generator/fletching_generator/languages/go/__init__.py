"""Go: package `abi`, the list of its fields, and the callbacks that the ABI tests exchange."""

from __future__ import annotations

from dataclasses import dataclass

from ...render import Filters, Output
from ...spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, struct_layout
from ...spec.model import Contract, Device, Enumerator, Field, Spec, Struct
from ...spec.types import (
    SCALAR_SIZES,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
)
from ...spelling import contract_facts, field_facts, literal, pascal, struct_facts
from .. import c

# Which GOOS and GOARCH have C's layouts of which class; a target that is in none has no structs.
_TARGETS = {
    "64bit": "amd64 || arm64 || loong64 || mips64 || mips64le || "
    "ppc64 || ppc64le || riscv64 || s390x",
    "32bit-align8": "arm || mips || mipsle || (386 && windows)",
    "32bit-align4": "386 && !windows",
}
_SCALARS = {name: name for name in SCALAR_SIZES} | {"int": "int32", "char": "int8"}
_INITIALISMS = {"dlpack": "DLPack", "id": "ID"}  # words that Go writes in capitals


@dataclass(frozen=True)
class GoCallback:
    """A callback as the tests exchange it; its first argument is the struct that holds it."""

    struct: Struct
    field: Field
    type: Callback

    @property
    def symbol(self) -> str:
        return f"{self.struct.name}_{self.field.name}"

    @property
    def is_void(self) -> bool:
        return self.type.returns == Scalar("void")


def outputs(spec: Spec) -> list[Output]:
    callbacks = [
        GoCallback(struct, field, field.type)
        for struct in spec.structs
        for field in struct.fields
        if isinstance(field.type, Callback)
    ]
    context = {"spec": spec, "callbacks": callbacks, "device_typedef": spec.device_typedef}
    targets = {"targets": _TARGETS}
    return [
        *(_structs(spec, target) for target in LAYOUT_CLASSES),
        Output(
            "bindings/go/abi/unsupported.go",
            "unsupported.go",
            "spec/*.yaml",
            targets,
        ),
        Output(
            "bindings/go/abi/constants.go",
            "constants.go",
            "spec/*.yaml",
            context,
        ),
        Output(
            "bindings/go/abi/devices.go",
            "devices.go",
            "spec/devices.yaml",
            context,
        ),
        Output(
            "bindings/go/abi/data_type_codes.go",
            "data_type_codes.go",
            "spec/dlpack.yaml",
            context,
        ),
        Output(
            "bindings/go/internal/fields/tables.go",
            "tables.go",
            "spec/*.yaml",
            context,
        ),
        Output(
            "bindings/go/internal/oracle/exports.go",
            "exports.go",
            "spec/*.yaml",
            context,
        ),
        Output(
            "bindings/go/internal/oracle/calls.go",
            "calls.go",
            "spec/*.yaml",
            context,
        ),
    ]


def _structs(spec: Spec, target: LayoutClass) -> Output:
    path = f"bindings/go/abi/structs_{target.name.replace('-', '_')}.go"
    context = {
        "spec": spec,
        "target": target,
        "constraint": _TARGETS[target.name],
        "layouts": {struct.name: struct_layout(spec, struct, target) for struct in spec.structs},
    }
    return Output(path, "structs.go", "spec/*.yaml", context)


# --- Names -------------------------------------------------------------------------------------


def go_name(name: str) -> str:
    """`n_children` as NChildren, `device_id` as DeviceID, `ARROW_FLAG_NULLABLE` as FlagNullable."""
    words = name.removeprefix("ARROW_").lower().split("_")
    return "".join(_INITIALISMS.get(word, word.capitalize()) for word in words)


def device_constant(device: Device) -> str:
    """`DeviceCUDAHost`: in the spelling of DLPack, which has a name for every device."""
    return "Device" + device.dlpack.removeprefix("kDL")


def code_constant(code: Enumerator) -> str:
    """`DataTypeFloat8E4M3FN` for kDLFloat8_e4m3fn."""
    stem, _, format_ = code.name.removeprefix("kDL").partition("_")
    return f"DataType{stem}{format_.upper()}"


def type_name(type_: Type) -> str:
    """The type of a field in Go; every address is a uintptr."""
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


# --- Texts -------------------------------------------------------------------------------------


def ownership(field: Field) -> str:
    """How C declares the field, who fills it in, and what may be in it."""
    declaration = c.declare(field, indent=0, width=10_000)
    return f"C: {declaration}. {field_facts(field)}"


def contract(terms: Contract) -> str:
    """Who calls a callback, and how."""
    return " ".join(contract_facts(terms))


def device_text(device: Device) -> str:
    arrow = f"{device.arrow} in Arrow" if device.arrow else "not in Arrow"
    return (
        f"{device_constant(device)} is {arrow}, {device.dlpack} in DLPack. {device.doc} "
        f"Device id: {device.device_id}."
    )


def device_row(device: Device) -> str:
    return (
        f'{{{device_constant(device)}, "{device.name}", "{device.arrow or ""}", '
        f'"{device.dlpack}", Event{pascal(device.event.pointer)}, '
        f'"{device.event.type or ""}"}}'
    )


# --- Assertions --------------------------------------------------------------------------------
# The lengths of two arrays, of which one is what the compiler says: where they differ, its message
# shows the expression, which names struct and field, and both numbers.


def assert_struct(layout: StructLayout, target: LayoutClass) -> str:
    # Go aligns nothing beyond the size of a pointer.
    align = min(layout.align, target.pointer_size)
    lengths = [f"unsafe.{name}({layout.struct}{{}})" for name in ("Sizeof", "Alignof")]
    return _assert_lengths((layout.size, align), lengths)


def assert_field(field: Field, layout: StructLayout) -> str:
    entry = next(f for f in layout.fields if f.name == field.name)
    member = f"{layout.struct}{{}}.{go_name(field.name)}"
    lengths = [f"unsafe.{name}({member})" for name in ("Offsetof", "Sizeof")]
    return _assert_lengths((entry.offset, entry.size), lengths)


def _assert_lengths(expected: tuple[int, int], lengths: list[str]) -> str:
    declared = "".join(f"[{number}]" for number in expected)
    found = "".join(f"[{length}]" for length in lengths)
    return f"var _ {declared}struct{{}} = {found}struct{{}}{{}}"


# --- Callbacks of the tests --------------------------------------------------------------------
# Values cross as in the oracle: the bits in their own width, zero-extended to 64.


def c_type(type_: Type) -> str:
    """The type of an argument or result in C; every address is a uintptr_t."""
    match type_:
        case Pointer() | Callback():
            return "uintptr_t"
        case Typedef(scalar=scalar):
            return c_type(scalar)
        case _:
            return c.type_name(type_)


def c_bits(type_: Type) -> str:
    """The unsigned type in C that has the width of this one."""
    match type_:
        case Pointer() | Callback():
            return "uintptr_t"
        case Typedef(scalar=scalar):
            return c_bits(scalar)
        case Scalar(name=name):
            return f"uint{8 * SCALAR_SIZES[name]}_t"
        case _:
            raise ValueError(f"{type_} is not an argument")


def go_parameters(callback: Callback) -> str:
    return ", ".join(f"a{i} C.{c_type(a.type)}" for i, a in enumerate(callback.arguments))


def go_bits(callback: Callback) -> str:
    unsigned = [c_bits(argument.type).removesuffix("_t") for argument in callback.arguments]
    return ", ".join(f"uint64({name}(a{i}))" for i, name in enumerate(unsigned))


def c_signature(field: Field) -> str:
    """`int (struct ArrowArrayStream*, struct ArrowArray*)`; empty for data."""
    if not isinstance(field.type, Callback):
        return ""
    parameters = ", ".join(c.type_name(argument.type) for argument in field.type.arguments)
    return f"{c.type_name(field.type.returns)} ({parameters})"


def c_values(callback: Callback) -> str:
    types = [c_type(argument.type) for argument in callback.arguments]
    return ", ".join(f"({name})arguments[{i}]" for i, name in enumerate(types))


FILTERS: Filters = {
    "assert_field": assert_field,
    "assert_struct": assert_struct,
    "c_bits": c_bits,
    "c_signature": c_signature,
    "c_type": c_type,
    "c_values": c_values,
    "code_constant": code_constant,
    "contract": contract,
    "device_constant": device_constant,
    "device_row": device_row,
    "device_text": device_text,
    "go_bits": go_bits,
    "go_name": go_name,
    "go_parameters": go_parameters,
    "literal": literal,
    "ownership": ownership,
    "struct_facts": struct_facts,
    "type_name": type_name,
}
