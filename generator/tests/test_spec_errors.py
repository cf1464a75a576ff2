"""Tests that mistakes in the spec are reported with file, line, key and hint, and write no file."""

from __future__ import annotations

import pytest
from conftest import Scratch

from fletching_generator.cli import main

DEVICE = "spec/c-device-data.yaml"

# file, old text, new text, expected error
SPOILED = {
    "unknown key": (
        "devices.yaml",
        "    doc: Memory of an OpenCL device.",
        "    doc: Memory of an OpenCL device.\n    colour: red",
        r"spec/devices\.yaml:\d+: devices\[3\]\.colour: unknown key 'colour'; hint: use one of",
    ),
    "misspelled key": (
        "c-device-data.yaml",
        "allocated_by: consumer",
        "alocated_by: consumer",
        r"structs\[0\]\.alocated_by: unknown key 'alocated_by'; hint: did you mean",
    ),
    "missing key": (
        "devices.yaml",
        "    dlpack: kDLOpenCL\n",
        "",
        r"devices\[3\]: 'dlpack' is missing; hint: add 'dlpack: \.\.\.'",
    ),
    "wrong kind of value": (
        "devices.yaml",
        "value: 13",
        "value: thirteen",
        r'devices\[\d+\]\.value: expected type integer, got "thirteen"',
    ),
    "value outside int32": (
        "devices.yaml",
        "value: 13",
        "value: 2147483648",
        r"devices\[\d+\]\.value: 2147483648 is out of range; hint: the maximum is 2147483647",
    ),
    "unknown choice": (
        "devices.yaml",
        'event: {pointer: object, type: "MTLEvent*"}',
        'event: {pointer: guess, type: "MTLEvent*"}',
        r'event\.pointer: "guess" is unknown; hint: use one of none, address_of_handle, object',
    ),
    "misspelled macro": (
        "devices.yaml",
        "arrow: ARROW_DEVICE_OPENCL",
        "arrow: ARROW_OPENCL",
        r"devices\[3\]\.arrow: \"ARROW_OPENCL\" does not match the pattern; hint: match",
    ),
    "duplicate value": (
        "devices.yaml",
        "value: 4\n",
        "value: 3\n",
        r"devices\[3\]\.value: 3 is already the value of 'cuda_host'; hint: use another number",
    ),
    "duplicate name": (
        "devices.yaml",
        "name: opencl",
        "name: cuda",
        r"devices\[3\]\.name: 'cuda' is already the name of 'cuda'; hint: rename one",
    ),
    "reserved value used": (
        "devices.yaml",
        "value: 7\n",
        "value: 6\n",
        r"devices\[4\]\.value: 6 is a reserved value, never assigned; hint: use another number",
    ),
    "macro and reason": (
        "devices.yaml",
        "    arrow: ARROW_DEVICE_OPENCL\n",
        "    arrow: ARROW_DEVICE_OPENCL\n    dlpack_only: not yet\n",
        r"devices\[3\]: needs either an Arrow macro or a reason why there is none",
    ),
    "released and unreleased": (
        "devices.yaml",
        "    doc: Memory of an OpenCL device.",
        "    doc: Memory of an OpenCL device.\n    unreleased: true",
        r"devices\[3\]: needs either 'since' or 'unreleased: true'; hint: a number is in a release",
    ),
    "event without a type": (
        "devices.yaml",
        'event: {pointer: object, type: "MTLEvent*"}',
        "event: {pointer: object}",
        r"event: pointer 'object' does not fit type none",
    ),
    "undefined note": (
        "devices.yaml",
        "note: producer_defined}",
        "note: producer_defind}",
        r"event\.note: note 'producer_defind' is not defined; hint: use one of currently_unknown",
    ),
    "undefined type": (
        "c-device-data.yaml",
        "type: ArrowDeviceType\n",
        "type: ArrowDevicType\n",
        r"structs\[0\]\.fields\[2\]\.type: type 'ArrowDevicType' is not defined; hint: define it",
    ),
    "no type at all": (
        "c-device-data.yaml",
        "type: int64[3]",
        "type: int64[3",
        r"fields\[4\]\.type: 'int64\[3' is not a type; hint: write a scalar",
    ),
    "void field": (
        "c-device-data.yaml",
        "type: int64[3]",
        "type: void",
        r"fields\[4\]\.type: a field cannot be void; hint: use void\* or a scalar",
    ),
    "argument without a name": (
        "c-stream.yaml",
        "callback(self: ArrowArrayStream*, out: ArrowSchema*) -> int",
        "callback(self: ArrowArrayStream*, ArrowSchema*) -> int",
        r"fields\[0\]\.type: 'ArrowSchema\*' is not an argument; hint: write it as 'name: type'",
    ),
    "callback without self": (
        "c-stream.yaml",
        "callback(self: ArrowArrayStream*, out: ArrowSchema*) -> int",
        "callback(out: ArrowSchema*) -> int",
        r"the first argument of 'get_schema' is not the struct; hint: write 'self:",
    ),
    "duplicate field": (
        "c-device-data.yaml",
        "- name: device_id",
        "- name: array",
        r"fields\[1\]\.name: field 'array' is a duplicate; hint: rename or remove one",
    ),
    "pointer that does not exist": (
        "c-async-stream.yaml",
        "points_to: {out: one?}",
        "points_to: {out: one?, outt: one?}",
        r"contract\.points_to\.outt: unknown pointer 'outt'; hint: use one of self, out",
    ),
    "argument without what it points to": (
        "c-async-stream.yaml",
        "points_to: {out: one?}",
        "points_to: {}",
        r"contract\.points_to: the pointer 'out' is missing; hint: add 'out:'",
    ),
    "result without what it points to": (
        "c-stream.yaml",
        "points_to: {return: text?}",
        "points_to: {}",
        r"contract\.points_to: the pointer 'return' is missing; hint: add 'return:'",
    ),
    "argument of an argument": (
        "dlpack.yaml",
        "            set_error.kind: text\n",
        "",
        r"contract\.points_to: the pointer 'set_error\.kind' is missing",
    ),
    "pointer without what it points to": (
        "c-device-data.yaml",
        "        points_to: opaque?\n",
        "",
        r"fields\[3\]: a pointer without 'points_to'; hint: add 'points_to: \.\.\.'",
    ),
    "what a number points to": (
        "c-device-data.yaml",
        "        type: int64[3]\n",
        "        type: int64[3]\n        points_to: many\n",
        r"fields\[4\]\.points_to: not a pointer: expected none; hint: remove it",
    ),
    "what a callback points to": (
        "c-stream.yaml",
        '        type: "callback(self: ArrowArrayStream*) -> const char*"\n',
        '        type: "callback(self: ArrowArrayStream*) -> const char*"\n'
        "        points_to: text\n",
        r"fields\[2\]\.points_to: a callback is not a pointer to data",
    ),
    "one level too few": (
        "c-data.yaml",
        "points_to: many? of opaque?",
        "points_to: many?",
        r"fields\[5\]\.points_to: 'many\?' has 1 levels, the type has 2; hint: name one, many,",
    ),
    "an unknown word of a pointer": (
        "c-device-data.yaml",
        "points_to: opaque?",
        "points_to: nothing",
        r"points_to: 'nothing' is not for a pointer; hint: write one, many, text or opaque",
    ),
    "a text of structs": (
        "c-async-stream.yaml",
        "points_to: {stream_schema: one}",
        "points_to: {stream_schema: text}",
        r"points_to\.stream_schema: 'text' does not fit the type; hint: void is opaque",
    ),
    "a failure that cannot be returned": (
        "c-stream.yaml",
        'failure: "NULL"',
        "failure: errno",
        r"contract\.failure: 'errno' does not fit the callback's return type; hint: write NULL",
    ),
    "embedded before declared": (
        "c-device-data.yaml",
        "requires: [c-data]",
        "requires: []",
        r"fields\[0\]\.type: 'ArrowArray' is embedded before it is declared",
    ),
    "unknown requirement": (
        "c-stream.yaml",
        "requires: [c-data]",
        "requires: [c-date]",
        r"requires\[0\]: 'c-date' is not declared before this interface",
    ),
    "duplicate guard": (
        "c-stream.yaml",
        "guard: ARROW_C_STREAM_INTERFACE",
        "guard: ARROW_C_DATA_INTERFACE",
        r"spec/project\.yaml:\d+: interfaces\[2\]: "
        r"guard ARROW_C_DATA_INTERFACE is already the guard of 'c-data'",
    ),
    "duplicate struct": (
        "c-stream.yaml",
        "- name: ArrowArrayStream",
        "- name: ArrowArray",
        r"structs\[0\]\.name: 'ArrowArray' is defined twice; hint: rename or remove one",
    ),
    "no home for the macros": (
        "c-device-data.yaml",
        "device_macros: true",
        "device_macros: false",
        r"spec/project\.yaml:\d+: interfaces: "
        r"the device macros are in no file; hint: set device_macros in one file",
    ),
    "a device type of another width": (
        "dlpack.yaml",
        "  - name: DLDeviceType\n    type: int32\n",
        "  - name: DLDeviceType\n    type: int64\n",
        r"typedefs\[0\]\.type: the type differs from ArrowDeviceType's: expected int32",
    ),
    "a function that is none": (
        "dlpack.yaml",
        'type: "callback(py_object: void*, out: DLTensor*) -> int"',
        "type: void*",
        r"functions\[3\]\.type: 'void\*' is not a function; hint: write callback\(",
    ),
    "two codes with one number": (
        "dlpack.yaml",
        "name: kDLUInt, label: uint, value: 1,",
        "name: kDLUInt, label: uint, value: 0,",
        r"typedefs\[1\]\.enumerators\[1\]\.value: '0' is a duplicate",
    ),
    "enumerators of another type": (
        "dlpack.yaml",
        "type: uint8\n        enumerated_by: DLDataTypeCode",
        "type: uint16\n        enumerated_by: DLDataTypeCode",
        r"enumerated_by: expected type uint8, got uint16; hint: the field has the type of the",
    ),
    "enumerators of no typedef": (
        "dlpack.yaml",
        "enumerated_by: DLDataTypeCode",
        "enumerated_by: DLDataTypeCodes",
        r"enumerated_by: 'DLDataTypeCodes' is not a typedef with enumerators; hint: name one",
    ),
    "erratum about nothing": (
        "errata.yaml",
        "about: ARROW_C_ASYNC_STREAM_INTERFACE",
        "about: ARROW_C_ASYNC_INTERFACE",
        r"errata\[\d+\]\.about: 'ARROW_C_ASYNC_INTERFACE' is not defined",
    ),
    "duplicate erratum": (
        "errata.yaml",
        "id: async-task-self-type",
        "id: async-producer-release",
        r"errata\[1\]\.id: 'async-producer-release' is a duplicate; hint: rename one",
    ),
    "not YAML": (
        "devices.yaml",
        "doc: Memory of an OpenCL device.",
        "doc: Memory: of an OpenCL device.",
        r"\(syntax\): not YAML: mapping values are not allowed here; hint: fix the",
    ),
    "duplicate key": (
        "devices.yaml",
        "    dlpack: kDLOpenCL\n",
        "    dlpack: kDLOpenCL\n    dlpack: kDLOpenCL\n",
        r"\(syntax\): key .dlpack. is a duplicate; hint: rename or remove one",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_spec_reports_place_and_hint(name: str, scratch: Scratch) -> None:
    scratch.refuses(*SPOILED[name])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("devices.yaml", "value: 4\n", "value: 3\n"),
        ("c-stream.yaml", "  - name: ArrowArrayStream", "  - name: ArrowArray"),
        ("errata.yaml", "about: ARROW_C_ASYNC_STREAM_INTERFACE", "about: ARROW_C_ASYNC_INTERFACE"),
    ],
)
def test_error_has_line_of_mistake(file: str, old: str, new: str, scratch: Scratch) -> None:
    line = scratch.replace(file, old, new)
    assert scratch.mistakes()[0].startswith(f"spec/{file}:{line}: ")


def test_rejects_missing_contract(scratch: Scratch) -> None:
    path = scratch.root / "spec" / "c-stream.yaml"
    text = path.read_text(encoding="utf-8")
    start = text.index("        contract:")
    end = text.index("      - name: get_next")
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    assert "callback 'get_schema' has no contract; hint: add 'contract:'" in scratch.mistakes()[0]


def test_rejects_contract_on_data(scratch: Scratch) -> None:
    path = scratch.root / "spec" / "c-stream.yaml"
    text = path.read_text(encoding="utf-8")
    text = text.replace(
        'type: "callback(self: ArrowArrayStream*, out: ArrowSchema*) -> int"', "type: void*"
    )
    path.write_text(text, encoding="utf-8")
    assert "only a callback has a contract; hint: remove it" in scratch.mistakes()[0]


def test_reports_every_mistake_in_file(scratch: Scratch) -> None:
    scratch.replace("devices.yaml", "value: 4\n", "value: 3\n")
    scratch.replace("devices.yaml", "value: 7\n", "value: 6\n")
    assert len(scratch.mistakes()) == 2


def test_rejects_missing_file(scratch: Scratch) -> None:
    (scratch.root / "spec" / "errata.yaml").unlink()
    assert scratch.mistakes() == [
        "spec/errata.yaml:1: (whole file): the file is missing; hint: add it"
    ]


def test_rejects_stray_file(scratch: Scratch) -> None:
    (scratch.root / "spec" / "c-data-old.yaml").write_text("guard: X\n", encoding="utf-8")
    assert "spec/c-data-old.yaml:1: (whole file): not a file of the spec" in scratch.mistakes()[0]


def test_rejects_binary_file(scratch: Scratch) -> None:
    (scratch.root / "spec" / "errata.yaml").write_bytes(b"errata: \xff\xfe\n")
    assert "byte 8 is not UTF-8; hint: save the file as UTF-8" in scratch.mistakes()[0]


def test_rejects_empty_file(scratch: Scratch) -> None:
    (scratch.root / "spec" / "errata.yaml").write_text("", encoding="utf-8")
    assert "(whole file): expected type object, got null" in scratch.mistakes()[0]


def test_generate_with_invalid_spec_writes_no_file(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch.replace("devices.yaml", "value: 4\n", "value: 3\n")
    assert main(["--root", str(scratch.root), "generate"]) == 2
    assert "spec/devices.yaml:" in capsys.readouterr().err
    assert [path.name for path in scratch.root.iterdir()] == ["spec"]
