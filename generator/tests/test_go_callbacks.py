"""Tests that Go's callback types, calls and stubs follow the spec."""

from __future__ import annotations

import re

import pytest
from conftest import Scratch

from fletching_generator.languages import go
from fletching_generator.languages.go import callbacks, core
from fletching_generator.render import render_module
from fletching_generator.spec.model import Spec

ABI = "bindings/go/abi"
STUBS = f"{ABI}/callbacks/stubs.go"
CALLS = f"{ABI}/callbacks/calls.go"


@pytest.fixture(scope="module")
def texts(spec: Spec) -> dict[str, str]:
    return render_module(go, spec)


def function(text: str, head: str) -> str:
    """Returns the function that begins with `head`, up to its closing brace."""
    start = text.index(f"\nfunc {head}(")
    return text[start : text.index("\n}\n", start)]


def stub(texts: dict[str, str], name: str) -> str:
    exported = re.findall(rf"^//export (\w+_{name})$", texts[STUBS], re.MULTILINE)
    return function(texts[STUBS], exported[0])


def test_every_callback_has_type_call_and_stub(texts: dict[str, str], spec: Spec) -> None:
    for struct in callbacks.structs(spec):
        for callback in struct.callbacks:
            type_ = callback.function_type.removeprefix("abi.")
            assert f"\ntype {type_} uintptr\n" in texts[f"{ABI}/functions.go"]
            for layout in ("64bit", "32bit_align8", "32bit_align4"):
                text = texts[f"{ABI}/structs_{layout}.go"]
                assert f"\t{callback.method} {type_}\n" in text
            assert f"called bool) {{\n\tif {'self' if callback.takes_self else 'table'}." in (
                function(texts[CALLS], f"Call{callback.name}")
            )
            assert f"C.{core.prefix(spec)}{callback.symbol})" in (
                function(texts[STUBS], f"{callback.name}Stub")
            )


def test_panic_returns_failure_of_contract(texts: dict[str, str], spec: Spec) -> None:
    expected = {"errno": "&result, C.EIO)", "-1": "&result, -1)", "NULL": "&result, 0)"}
    seen = set()
    for struct in callbacks.structs(spec):
        for callback in struct.callbacks:
            assert callback.field.contract is not None
            failure = str(callback.field.contract.failure)
            seen.add(failure)
            guard = re.findall(r"\tdefer (.*)\n", stub(texts, callback.symbol))
            assert len(guard) == 1
            assert guard[0].endswith(expected.get(failure, f'ignore("{callback.title}")'))
    assert seen == {"errno", "-1", "NULL", "nothing"}


@pytest.mark.parametrize(
    ("name", "guard"),
    [
        ("ArrowArrayStream_get_next", "keepText"),
        ("ArrowDeviceArrayStream_get_schema", "keepText"),
        ("ArrowArrayStream_get_last_error", "fail"),
        ("ArrowAsyncTask_extract_data", "fail"),
        ("DLPackExchangeAPI_managed_tensor_allocator", "report"),
        ("DLPackExchangeAPI_current_work_stream", "fail"),
    ],
)
def test_panic_text_is_stored_where_possible(name: str, guard: str, texts: dict[str, str]) -> None:
    assert f"\tdefer {guard}(" in stub(texts, name)


def test_functions_without_struct_call_process_value(texts: dict[str, str]) -> None:
    assert "func SetDLPackExchangeAPI(value DLPackExchangeAPICallbacks)" in texts[STUBS]
    assert texts[STUBS].count("\nfunc Set") == 1
    assert "PrivateData" not in stub(texts, "DLPackExchangeAPI_current_work_stream")


def test_freeing_releases_are_called_in_place(texts: dict[str, str]) -> None:
    moved = r"func Release(\w+)\(.*\n(?:.*\n){4}\tC\.release_moved"
    assert set(re.findall(moved, texts[CALLS])) == {
        "ArrowSchema",
        "ArrowArray",
        "ArrowArrayStream",
        "ArrowDeviceArrayStream",
    }
    for name, field in (
        ("DLManagedTensor", "Deleter"),
        ("ArrowAsyncDeviceStreamHandler", "Release"),
    ):
        assert f"Call{name}{field}(self)" in function(texts[CALLS], f"Release{name}")
        assert f"(s *{name}) MoveTo" not in texts[f"{ABI}/operations.go"]


def test_release_marks_struct_before_go_call(texts: dict[str, str]) -> None:
    text = stub(texts, "ArrowArray_release")
    assert text.index(".Release = 0\n") < text.index("find[ArrowArrayCallbacks](handle).Release(")
    assert ".Release = 0" not in stub(texts, "ArrowAsyncDeviceStreamHandler_release")


# --- Wrong specs must still generate Go that compiles, so that the ABI tests can detect them -----


def test_struct_without_private_data_uses_static_callbacks(scratch: Scratch) -> None:
    path = scratch.root / "spec" / "c-stream.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("private_data", "own_data"), "utf-8")
    texts = render_module(go, scratch.load())
    assert "func SetArrowArrayStream(value ArrowArrayStreamCallbacks)" in texts[STUBS]
    assert "staticArrowArrayStream.get().GetNext(" in stub(texts, "ArrowArrayStream_get_next")
    assert "\tdefer fail(" in stub(texts, "ArrowArrayStream_get_next"), "the stub gets no handle"


def test_release_with_result_has_call_only(scratch: Scratch) -> None:
    scratch.replace(
        "c-async-stream.yaml",
        'type: "callback(self: ArrowAsyncDeviceStreamHandler*) -> void"',
        'type: "callback(self: ArrowAsyncDeviceStreamHandler*) -> int"',
    )
    path = scratch.root / "spec" / "c-async-stream.yaml"
    before, after = path.read_text(encoding="utf-8").rsplit("failure: nothing", 1)
    path.write_text(f"{before}failure: errno{after}", encoding="utf-8")
    texts = render_module(go, scratch.load())
    assert "func ReleaseArrowAsyncDeviceStreamHandler(" not in texts[CALLS]
    call = function(texts[CALLS], "CallArrowAsyncDeviceStreamHandlerRelease")
    assert "(result int32, called bool)" in call
    assert "(s *ArrowAsyncDeviceStreamHandler) IsReleased" not in texts[f"{ABI}/operations.go"]
