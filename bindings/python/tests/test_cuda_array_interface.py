"""The checks of the CUDA Array Interface, on the dictionaries that every language replays."""

from __future__ import annotations

import pytest

import cuda_array_interface_vectors
from cuda_array_interface_vectors import Vector
from fletching.cuda_array_interface import RULES, Rule, Violation, check

VECTORS = cuda_array_interface_vectors.load()
PREFIX = "cuda-array-interface."


def broken(vector: Vector, rules: tuple[Rule, ...] = RULES) -> list[str]:
    """What `check` finds, as the vectors say it."""
    found = check(vector.interface, rules)
    return [f"{v.rule.removeprefix(PREFIX)} {v.key}".strip() for v in found]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.name)
def test_vector(vector: Vector) -> None:
    assert broken(vector) == vector.breaks


def test_vectors_are_many_and_of_every_version() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) >= 60
    dictionaries = [v.interface for v in VECTORS if isinstance(v.interface, dict)]
    assert {0, 1, 2, 3} <= {d.get("version") for d in dictionaries if type(d.get("version")) is int}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_without_the_rule_a_vector_fails(rule: Rule) -> None:
    others = tuple(other for other in RULES if other is not rule)
    assert any(broken(vector, others) != vector.breaks for vector in VECTORS)


def test_a_violation_reads_as_a_sentence() -> None:
    interface = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 0}
    assert check(interface) == [
        Violation(
            rule="cuda-array-interface.stream-zero",
            key="stream",
            severity="error",
            found="0",
            hint="give None, 1 or 2, whichever is meant",
        )
    ]
    assert str(check(interface)[0]) == (
        "stream: 0; give None, 1 or 2, whichever is meant [cuda-array-interface.stream-zero]"
    )
    assert str(check(None)[0]) == (
        "dictionary: None; return a dict [cuda-array-interface.dictionary]"
    )
