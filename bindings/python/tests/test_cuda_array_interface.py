"""The checks of the CUDA Array Interface, on the dictionaries that all languages share."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

import cuda_array_interface_vectors
from cuda_array_interface_vectors import Vector
from fletching import check_cuda_array_interface
from fletching._violation import Violation

VECTORS = cuda_array_interface_vectors.load()
PREFIX = "cuda-array-interface."
SPEC = "spec/cuda-array-interface.yaml"


def broken(vector: Vector) -> list[str]:
    """Returns the findings of `check` in the notation of the vectors."""
    found = check_cuda_array_interface(vector.interface)
    return [f"{v.rule.removeprefix(PREFIX)} {v.key}".strip() for v in found]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_check_vector_finds_expected_violations(vector: Vector) -> None:
    assert broken(vector) == vector.breaks


def test_vectors_cover_every_version() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) >= 60
    dictionaries = [v.interface for v in VECTORS if isinstance(v.interface, dict)]
    assert {0, 1, 2, 3} <= {d.get("version") for d in dictionaries if type(d.get("version")) is int}


def published() -> dict[str, dict[str, str]]:
    """Returns the checks of the specification by name."""
    text = (cuda_array_interface_vectors.FILE.parents[2] / SPEC).read_text("utf-8")
    return {check["name"]: check for check in YAML(typ="safe").load(text)["checks"]}


def test_vectors_break_every_rule() -> None:
    """The rules are independent: if one were missing, the vectors that break it would fail."""
    found = {line.split()[0] for vector in VECTORS for line in broken(vector)}
    assert found == set(published())


def test_hints_and_severities_match_specification() -> None:
    specified = published()
    for vector in VECTORS:
        for violation in check_cuda_array_interface(vector.interface):
            check = specified[violation.rule.removeprefix(PREFIX)]
            assert (violation.hint, violation.severity) == (check["hint"], check["severity"])
            assert violation.key.rpartition("mask.")[2] in (check.get("key") or "", "mask")


def test_violation_str_is_sentence() -> None:
    interface = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 0}
    assert check_cuda_array_interface(interface) == [
        Violation(
            rule="cuda-array-interface.stream-zero",
            key="stream",
            severity="error",
            found="0",
            hint="give None, 1 or 2, whichever is meant",
        )
    ]
    assert str(check_cuda_array_interface(interface)[0]) == (
        "stream: 0; give None, 1 or 2, whichever is meant [cuda-array-interface.stream-zero]"
    )
    assert str(check_cuda_array_interface(None)[0]) == (
        "dictionary: None; return a dict [cuda-array-interface.dictionary]"
    )
