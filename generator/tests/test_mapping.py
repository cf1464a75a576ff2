"""Rules against their sentences: each kind of misfit is named, and no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fletching_generator.rules.mapping import EITHER, MAY, MUST, SHOULD, STATES, strength
from fletching_generator.rules.rulebook import Family, Rule, Rulebook, Statement, Text
from fletching_generator.rules.sentences import read_sentences
from fletching_generator.rules.texts import as_text, check_texts
from fletching_generator.spec.model import Spec


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("*Mandatory.*", MUST),
        ("Consumers MUST not process this member.", MUST),
        ("The consumer CANNOT assume that this is valid.", MUST),
        ("The pointers MAY be null only in two situations.", MUST),
        ("The returned pointer is only guaranteed to be valid until then.", MUST),
        ("It should be closed.", SHOULD),
        ("It is recommended, but not required, that it is closed.", SHOULD),
        ("It is invalid to call this; producers should error.", EITHER),
        ("May be NULL if omitted; MAY be -1.", MAY),
        ("NULL can also be returned.", MAY),
        ("Call it if necessary; it is not guaranteed to be there.", STATES),
        ("To verify the expected kind of data.", STATES),
        ("It may have to hold the lock.", STATES),
        ("They can't see it.", STATES),
    ],
)
def test_what_a_sentence_demands(sentence: str, expected: str) -> None:
    assert strength(sentence) == expected


def said(folder: Path, spec: Spec | None, text: str, *others: str, **rule: Any) -> str:
    """The problems of a rule with a sentence of one text, without the other texts."""
    known = {"id": "box.closed", "party": "producer", "severity": "error", "text": "Closed."}
    the_rule = Rule(**{**known, "check": "test", **rule})
    (folder / "box.txt").write_text(text, encoding="utf-8")
    entries = tuple(
        Statement(s.section, s.hash, (the_rule.id,), None) for s in read_sentences(text, "plain")
    )
    box = Text("box", "box.txt", "Box", "1", "p", "p", "plain", (), (), (), None, entries)
    texts = (box, *(replace(box, id=name, file=name) for name in others))
    book = Rulebook((Family("box", "Box", "Box.", {"box": "Box"}, (the_rule,)),), texts)
    report = check_texts(book, [folder], spec)
    assert report.wrong == bool(report.misfits)
    assert all(line in as_text(report) for line in report.misfits)
    return "\n".join(report.misfits)


BOX = "Boxes#\n\nA box {} be closed.\n"


@pytest.mark.parametrize(
    ("verb", "rule", "expected"),
    [
        ("must", {"severity": "warning"}, "says \"must\", but 'box.closed' is a warning; make"),
        ("must", {"stricter": "so"}, "says \"must\", so 'box.closed' is not stricter; remove"),
        ("should", {}, "says \"should\", but 'box.closed' is an error; make it a warning, or"),
        ("may", {}, "permits, so the producer cannot break 'box.closed'; map it to what"),
        ("may", {"severity": "warning"}, "permits, so the producer cannot break 'box.closed'"),
        ("will", {"severity": "warning", "lenient": "so"}, "'box.closed' has 'lenient', but no"),
    ],
)
def test_another_strength(verb: str, rule: dict[str, str], expected: str, tmp_path: Path) -> None:
    line = said(tmp_path, None, BOX.format(verb), **rule)
    assert expected in line
    assert "\n" not in line
    assert line.startswith("box.txt:3: [Boxes]" if "has 'lenient'" not in expected else "'box.")


@pytest.mark.parametrize(
    ("verb", "rule"),
    [
        ("must", {}),
        ("must", {"severity": "warning", "lenient": "so"}),
        ("should", {"stricter": "so"}),
        ("should", {"severity": "warning"}),
        ("may", {"party": "consumer"}),
        ("may", {"stricter": "so"}),
        ("will", {}),
    ],
)
def test_the_same_strength_or_a_reason(verb: str, rule: dict[str, str], tmp_path: Path) -> None:
    assert said(tmp_path, None, BOX.format(verb), **rule) == ""


def test_the_strongest_sentence_counts(tmp_path: Path) -> None:
    """Also one of a text that is not given: then only a "must" is certain."""
    assert said(tmp_path, None, BOX.format("should") + BOX.format("must")) == ""
    assert said(tmp_path, None, BOX.format("should"), "lid.txt") == ""
    warning = said(tmp_path, None, BOX.format("must"), "lid.txt", severity="warning")
    assert "make it an error" in warning


@pytest.mark.parametrize(
    ("sentence", "party", "wrong"),
    [
        ("Consumers MUST NOT open it.", "producer", True),
        ("Consumers MUST NOT open it.", "consumer", False),
        ("Consumers MUST NOT open it.", "both", False),
        ("The producer of the box must close it.", "consumer", True),
        ("The producer must close it, the consumer must open it.", "library", False),
        ("The user must keep it closed.", "producer", True),
        ("Users must keep it closed.", "producer", False),
    ],
)
def test_another_party(sentence: str, party: str, wrong: bool, tmp_path: Path) -> None:
    line = said(tmp_path, None, f"Boxes#\n\n{sentence}\n", party=party)
    assert ("binds the" in line and f"'box.closed' ({party})" in line) == wrong
    assert wrong or not line


@pytest.mark.parametrize(
    ("section", "about", "sentence", "wrong"),
    [
        ("ArrowDeviceArray.device_id", "ArrowAsyncProducer.cancel", "Mandatory.", True),
        ("ArrowDeviceArray.device_id", "ArrowDeviceArray", "Mandatory.", False),
        ("ArrowDeviceArray.device_id", "ArrowAsyncProducer", "An ArrowAsyncProducer must.", False),
        # The type of the member, and the argument of the callback.
        ("ArrowDeviceArray.array", "ArrowArray.release", "Mandatory.", False),
        (
            "ArrowArrayTask.extract_data",
            "ArrowAsyncDeviceStreamHandler.on_next_task",
            "Must.",
            False,
        ),
        ("DLManagedTensor.deleter", "DLManagedTensorVersioned.deleter", "Must be called.", False),
        ("Thread safety", "ArrowAsyncProducer.cancel", "Mandatory.", False),
        ("ArrowDeviceArray.device_id", None, "Mandatory.", False),
    ],
)
def test_another_subject(
    *, section: str, about: str | None, sentence: str, wrong: bool, spec: Spec, tmp_path: Path
) -> None:
    line = said(tmp_path, spec, f"{section}#\n\n{sentence}\n", about=about)
    assert line.startswith(f"box.txt:3: [{section}] is about ") == wrong
    assert wrong or not line
