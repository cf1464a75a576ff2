"""Go: packages `abi` and `abi/callbacks`, the core, the fields, and the data of the ABI tests."""

from __future__ import annotations

from ...reading.types import Pointer, StructType, Type
from ...render import Filters, Output
from ...spec import operations
from ...spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, struct_layout
from ...spec.model import Contract, Device, Field, Spec, Struct
from ...spelling import contract_facts, field_facts, literal, pascal, struct_facts
from ..c import names as c
from . import callbacks, core, names

# The GOOS and GOARCH of each layout class. Other targets have no structs.
_TARGETS = {
    "64bit": "amd64 || arm64 || loong64 || mips64 || mips64le || "
    "ppc64 || ppc64le || riscv64 || s390x",
    "32bit-align8": "arm || mips || mipsle || (386 && windows)",
    "32bit-align4": "386 && !windows",
}


def outputs(spec: Spec) -> list[Output]:
    context = {
        "spec": spec,
        "structs": callbacks.structs(spec),
        "device_typedef": spec.device_typedef,
        "targets": _TARGETS,
        "releases": {s.name: operations.release(spec, s) for s in spec.structs},
        "texts": {s.name: operations.texts(s) for s in spec.structs},
        "lists": {s.name: operations.lists(s) for s in spec.structs},
        "references": {s.name: references(s) for s in spec.structs},
        "prefix": core.prefix(spec),
    }
    files = {
        "abi/constants.go": "spec/*.yaml",
        "abi/data_type_codes.go": "spec/dlpack.yaml",
        "abi/devices.go": "spec/devices.yaml",
        "abi/functions.go": "spec/*.yaml",
        "abi/operations.go": "spec/*.yaml",
        "abi/unsupported.go": "spec/*.yaml",
        "abi/callbacks/calls.go": "spec/*.yaml",
        "abi/callbacks/stubs.go": "spec/*.yaml",
        "internal/fields/tables.go": "spec/*.yaml",
        "internal/oracle/reports.go": "spec/*.yaml",
    }
    return [
        *(_structs(spec, target) for target in LAYOUT_CLASSES),
        *(
            Output(f"bindings/go/{path}", path.rpartition("/")[2], source, context)
            for path, source in files.items()
        ),
        *_errno(spec),
        core.output(spec),
    ]


def _errno(spec: Spec) -> list[Output]:
    """Returns the errno constants, from package syscall except on Windows, where it differs."""
    table, folder, source = spec.errno, "bindings/go/abi", "spec/errno.yaml"
    classes = table.of("go")
    values = [name for names in classes.values() for name in names]  # "io/fs.ErrInvalid"
    packages = sorted({"errors", "syscall", *(name.rpartition(".")[0] for name in values)})
    context = {"classes": classes, "packages": packages, "other": table.other}
    numbers = {"errors": table.errors, "other": table.other}
    return [
        Output(f"{folder}/errno.go", "errno.go", source, context),
        Output(f"{folder}/errno_table.go", "errno_table.go", source, numbers),
        *(
            Output(
                f"{folder}/errno_{system}.go",
                "errno_system.go",
                source,
                {"system": system, **numbers},
            )
            for system in ("unix", "windows")
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


def references(struct: Struct) -> list[Field]:
    """Returns the pointers to a single struct."""
    found = [f for f in struct.fields if isinstance(f.type, Pointer) and f.type.target == "one"]
    return [field for field in found if pointed_struct(field.type)]


def pointed_struct(type_: Type) -> str | None:
    """Returns `ArrowArray` for its address, in a field or in a list."""
    match type_:
        case Pointer(to=StructType(name=name)):
            return name
        case _:
            return None


# --- Texts -------------------------------------------------------------------------------------


def ownership(field: Field) -> str:
    """Returns the C declaration of the field, who fills it in, and its valid values."""
    return f"C: {c.declarator(field.name, field.type)}. {field_facts(field)}"


def contract(terms: Contract) -> str:
    """Returns who calls a callback, and how."""
    return " ".join(contract_facts(terms))


def device_text(device: Device) -> str:
    arrow = f"{device.arrow} in Arrow" if device.arrow else "not in Arrow"
    return (
        f"{names.device_constant(device)} is {arrow}, {device.dlpack} in DLPack. {device.doc} "
        f"Device id: {device.device_id}."
    )


def device_row(device: Device) -> str:
    return (
        f'{{{names.device_constant(device)}, "{device.name}", "{device.arrow or ""}", '
        f'"{device.dlpack}", Event{pascal(device.event.pointer)}, '
        f'"{device.event.type or ""}"}}'
    )


# --- Assertions --------------------------------------------------------------------------------
# Each assertion compares the lengths of two arrays, one of which the compiler computes. On a
# mismatch its message shows the expression, which names struct and field, and both numbers.


def assert_struct(layout: StructLayout, target: LayoutClass) -> str:
    # Go aligns a struct to at most the size of a pointer.
    align = min(layout.align, target.pointer_size)
    lengths = [f"unsafe.{name}({layout.struct}{{}})" for name in ("Sizeof", "Alignof")]
    return _assert_lengths((layout.size, align), lengths)


def assert_field(field: Field, layout: StructLayout) -> str:
    entry = next(f for f in layout.fields if f.name == field.name)
    member = f"{layout.struct}{{}}.{names.go_name(field.name)}"
    lengths = [f"unsafe.{name}({member})" for name in ("Offsetof", "Sizeof")]
    return _assert_lengths((entry.offset, entry.size), lengths)


def _assert_lengths(expected: tuple[int, int], lengths: list[str]) -> str:
    declared = "".join(f"[{number}]" for number in expected)
    found = "".join(f"[{length}]" for length in lengths)
    return f"var _ {declared}struct{{}} = {found}struct{{}}{{}}"


FILTERS: Filters = {
    "argument_type": callbacks.go_type,
    "assert_field": assert_field,
    "assert_struct": assert_struct,
    "argument_name": names.argument_name,
    "bits": callbacks.bits,
    "c_signature": callbacks.c_signature,
    "c_type": callbacks.c_type,
    "call_arguments": callbacks.call_arguments,
    "call_parameters": callbacks.call_parameters,
    "call_type": callbacks.call_type,
    "code_constant": names.code_constant,
    "contract": contract,
    "device_constant": names.device_constant,
    "device_row": device_row,
    "device_text": device_text,
    "field_type": names.field_type,
    "from_bits": callbacks.from_bits,
    "function_type": names.function_type,
    "go_name": names.go_name,
    "go_path": lambda path: ".".join(map(names.go_name, path)),
    "is_pointer": lambda type_: isinstance(type_, Pointer),
    "literal": literal,
    "method_parameters": callbacks.method_parameters,
    "ownership": ownership,
    "pointed_struct": pointed_struct,
    "singular": names.singular,
    "struct_facts": struct_facts,
    "stub_arguments": callbacks.stub_arguments,
    "stub_parameters": callbacks.stub_parameters,
    "to_bits": callbacks.to_bits,
    "type_name": names.type_name,
}
