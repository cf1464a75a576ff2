"""Python objects and functions: correct ones have no finding, broken ones have their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run, validate


@pytest.fixture
def run(library: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Validates an expression of exporters.py, which exports the structs of the library."""
    monkeypatch.setenv("FLETCHING_COUNTER", str(library("CORRECT")))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    def validated(expression: str, *options: str) -> Run:
        return validate("--python", f"exporters:{expression}", "--json", *options)

    return validated


@pytest.mark.parametrize(("expression", "cases"), [("Array()", 9), ("Stream()", 12)])
def test_correct_object_has_no_finding(
    run: Callable[..., Run], expression: str, cases: int
) -> None:
    found = run(expression)
    assert (found.code, found.report["findings"]) == (0, [])
    assert len(found.report["cases"]) == cases


# DLPack has no nulls.
@pytest.mark.parametrize(
    ("error", "code", "rules"),
    [("BufferError", 0, set()), ("ValueError", 1, {"check.exception"})],
)
def test_tensor_that_cannot_be_exported_raises_buffer_error(
    run: Callable[..., Run], error: str, code: int, rules: set[str]
) -> None:
    found = run(f"Tensor({error})")
    assert "the process has failed" not in found.errors
    assert (found.code, found.rules("warning"), found.rules("error")) == (code, rules, set())


def test_panic_of_tensor_is_finding(run: Callable[..., Run]) -> None:
    found = run("Tensor(PanicError)")
    assert "the process has failed" not in found.errors
    assert found.rules("error") == {"check.exception"}


@pytest.mark.parametrize(
    ("destructor", "rules"),
    [
        ("'direct'", set()),
        ("'twice'", {"dlpack-capsule.destructor"}),
        ("", {"dlpack-capsule.destructor"}),
    ],
)
def test_dropped_tensor_is_deleted_once(
    run: Callable[..., Run], destructor: str, rules: set[str]
) -> None:
    assert run(f"DroppedTensor({destructor})", "--case", "capsule-unread").rules() == rules


@pytest.mark.parametrize(
    ("expression", "rules"),
    [
        ("WrongNames()", {"capsule.names", "check.call-fails"}),
        ("WithoutDestructor()", {"capsule.destructor-releases"}),
        ("WithoutRequest()", {"check.exception"}),
        ("RefusesRequest()", {"arrow-methods.requested-schema-tried"}),
        ("CudaArray(stream=0)", {"cai-stream.not-zero"}),
        ("CudaArray(shape=[3])", {"cai.shape-tuple"}),
        ("CudaArray(shape=(0,))", {"cai.zero-size-pointer"}),
    ],
)
def test_broken_object_has_its_rules(
    run: Callable[..., Run], expression: str, rules: set[str]
) -> None:
    found = run(expression)
    assert (found.code, found.rules()) == (1, rules)


def test_structs_of_object_pass_through_layer(
    run: Callable[..., Run], library: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLETCHING_COUNTER", str(library("BROKEN")))
    found = run("Array()", "--case", "read")
    assert (found.code, found.rules()) == (
        1,
        {"array.buffers-null-only-when", "release.marks-released"},
    )


@pytest.mark.parametrize(
    ("function", "rules"),
    [
        ("consume", set()),
        ("hold", {"check.account"}),
        ("fail", {"check.refuses-valid"}),
        ("panic", {"check.refuses-valid", "check.exception"}),
    ],
)
def test_consuming_function(run: Callable[..., Run], function: str, rules: set[str]) -> None:
    options = ["--consumes", "--as", "array-consumer", "--case", "array.good"]
    found = run(function, *options)
    assert (found.code, found.rules()) == (1 if rules else 0, rules)
    assert len(found.report["cases"]) == 1


@pytest.mark.parametrize(
    ("function", "rules"),
    [
        ("take_legacy", set()),
        ("lambda given: take_legacy(given, is_deleted=False)", {"check.account"}),
    ],
)
def test_consumer_of_legacy_tensors_gets_them(
    run: Callable[..., Run], function: str, rules: set[str]
) -> None:
    found = run(function, "--consumes", "--as", "tensor-consumer", "--case", "tensor.good")
    assert [case["name"] for case in found.report["cases"]] == [
        "legacy-tensor-consumer/tensor.good"
    ]
    assert found.rules() == rules


@pytest.mark.parametrize("role", ["tensor-consumer", "legacy-tensor-consumer"])
def test_numpy_takes_both_kinds_of_tensors(role: str) -> None:
    options = ["--consumes", "--as", role, "--case", "tensor.good", "--json"]
    found = validate("--python", "numpy:from_dlpack", *options)
    assert [case["name"] for case in found.report["cases"]] == [f"{role}/tensor.good"]
    assert (found.code, found.report["findings"]) == (0, [])


def test_module_may_define_names_on_first_use(
    run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def __getattr__(name): return getattr(__import__('exporters'), name)"
    (tmp_path / "lazy.py").write_text(text, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{tmp_path}", prepend=os.pathsep)
    found = validate("--python", "lazy:(lambda: Array())()", "--case", "read", "--json")
    assert (found.code, len(found.report["cases"])) == (0, 1)


@pytest.mark.parametrize(
    ("function", "role"),
    [("numpy:from_dlpack", "tensor-consumer"), ("pyarrow:array", "array-consumer")],
)
def test_library_function_has_no_error(function: str, role: str) -> None:
    kind = role.partition("-")[0]
    options = ["--consumes", "--as", role, "--case", f"{kind}.good*", "--json"]
    found = validate("--python", function, *options)
    assert found.rules("error") == set()
    assert {case["name"].partition("/")[2] for case in found.report["cases"]} >= {f"{kind}.good"}


def test_skipped_case_is_not_played(run: Callable[..., Run]) -> None:
    options = ["--consumes", "--as", "array-consumer", "--case", "array.good*"]
    played = [run("consume", *options, *skip) for skip in ([], ["--skip", "array.good"])]
    names = [{case["name"] for case in each.report["cases"]} for each in played]
    assert names[0] - names[1] == {"array-consumer/array.good"}
    assert names[1]


def test_every_case_is_played_once_if_each_crashes(run: Callable[..., Run]) -> None:
    found = run("crash", "--consumes", "--as", "array-consumer", "--case", "array.good*")
    names = [case["name"].partition("/")[2] for case in found.report["cases"]]
    (crash,) = found.report["findings"]
    assert names == ["array.good", "array.good-children"]
    assert (crash["rule"], crash["more_cases"]) == ("check.crash", 1)


def test_refusal_of_stream_without_columns_is_note() -> None:
    options = ["--consumes", "--case", "stream.good", "--json"]
    found = validate("--python", "pyarrow:table", *options)
    assert (found.code, found.rules("note")) == (0, {"check.refuses-valid"})


def test_panic_names_broken_struct(run: Callable[..., Run]) -> None:
    found = run("panic", "--consumes", "--as", "array-consumer", "--case", "array.length-*")
    messages = [each["message"] for each in found.report["findings"]]
    text = "raised PanicError: expected a subclass of Exception, given a broken struct"
    assert text in messages
    assert found.rules("error") == set()


def test_panic_of_expression_is_named(run: Callable[..., Run]) -> None:
    found = run("panic(None)")
    assert (found.code, "cannot evaluate: PanicError: not implemented" in found.errors) == (2, True)


def test_release_of_remains_of_failed_call_is_warning() -> None:
    options = ["--consumes", "--case", "stream.error-fills-array", "--json"]
    found = validate("--python", "pyarrow:chunked_array", *options)
    assert (found.rules("error"), found.rules("warning")) == (set(), {"check.account"})


@pytest.mark.parametrize("expression", ["array([1, 2])", "table({'a': [1, 2]})"])
def test_pyarrow_has_no_finding(expression: str) -> None:
    found = validate("--python", f"pyarrow:{expression}", "--json")
    assert (found.code, found.report["findings"]) == (0, [])


def test_numpy_tensor_has_no_finding() -> None:
    found = validate("--python", "numpy:arange(3)", "--json")
    assert (found.code, found.report["findings"]) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["pyarrow:nulls(1)", "--case", "no"], "no case was played: expected another --case"),
        (["json:loads"], "no protocol: expected one of __arrow_c_array__"),
        (["json:no_name"], "cannot evaluate: NameError"),
        (["no_module:x"], "cannot evaluate: ModuleNotFoundError"),
        (["json"], "expected MODULE:EXPRESSION, got 'json'"),
        (["json:loads", "--consumes", "--as", "async-consumer"], "--as async-consumer: expected"),
    ],
)
def test_unusable_python_target_exits_2(arguments: list[str], text: str) -> None:
    found = validate("--python", *arguments)
    assert (found.code, found.output) == (2, "")
    assert text in found.errors
