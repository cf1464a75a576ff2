"""Tests that mistakes in the rules or in a text's entries are reported with file, line and hint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.rules.rulebook import load_rulebook
from fletching_generator.spec.load import load_spec

RULES = "rules/c-stream.yaml"
DICTIONARY = "cuda-array-interface.yaml"
TEXT = "texts/array-api-from-dlpack.yaml"
FIRST = "  - id: stream-header.guard-kept\n"

# file, old text, new text, expected error
SPOILED = {
    "unknown key": (
        RULES,
        FIRST,
        f"{FIRST}    colour: red\n",
        r"spec/rules/c-stream\.yaml:11: rules\[0\]\.colour: unknown key 'colour'",
    ),
    "unknown party": (
        RULES,
        f"{FIRST}    party: library",
        f"{FIRST}    party: nobody",
        r'rules\[0\]\.party: "nobody" is unknown; hint: use one of producer, consumer, both',
    ),
    "misspelled id": (
        RULES,
        FIRST,
        FIRST.replace(".", "_"),
        r"rules\[0\]\.id: \"stream-header_guard-kept\" does not match the pattern",
    ),
    "duplicate id": (
        RULES,
        "- id: stream.get-next-not-after-release",
        "- id: stream.get-schema-not-after-release",
        r"rules\[3\]\.id: 'stream\.get-schema-not-after-release' is a duplicate; hint: "
        r"it is already in spec/rules/c-stream\.yaml",
    ),
    "unknown group": (
        RULES,
        "  stream-result: Schema",
        "  stream-results: Schema",
        r"rules\[\d+\]\.id: 'stream-result' is not a group of this file; hint: use one of",
    ),
    "empty group": (
        RULES,
        "  stream-result: Schema",
        "  stream-end: The end\n  stream-result: Schema",
        r"groups\.stream-end: no rule is in group 'stream-end'; hint: remove it",
    ),
    "unknown struct": (
        RULES,
        "    about: ARROW_C_STREAM_INTERFACE",
        "    about: ArrowArrayStreem",
        r"rules\[0\]\.about: 'ArrowArrayStreem' is not defined; hint: name a struct, Struct\.field",
    ),
    "unknown field": (
        "rules/c-device-data.yaml",
        "    about: ArrowDeviceArray.reserved",
        "    about: ArrowDeviceArray.reserve",
        r"\.about: 'ArrowDeviceArray\.reserve' is not defined",
    ),
    "unknown erratum": (
        "rules/c-device-data.yaml",
        "errata: [reserved-not-zeroed]",
        "errata: [reserved-not-zerod]",
        r"\.errata\[0\]: unknown erratum 'reserved-not-zerod'; hint: use the id of an entry in",
    ),
    "not checkable without a reason": (
        RULES,
        "    check: compile\n",
        "    check: not_checkable\n",
        r"rules\[0\]\.check: 'not_checkable' and 'reason' belong together; hint:",
    ),
    "reason of a rule that can be checked": (
        RULES,
        "    check: compile\n",
        "    check: compile\n    reason: too hard\n",
        r"rules\[0\]\.check: 'not_checkable' and 'reason' belong together",
    ),
    "reason for no case of a rule that needs none": (
        RULES,
        "    check: compile\n",
        "    check: compile\n    no_case: too hard\n",
        r"rules\[0\]\.no_case: 'no_case' is for a check 'validator' or 'test', not 'compile'",
    ),
    "stricter warning": (
        RULES,
        f"{FIRST}    party: library\n    severity: error\n",
        f"{FIRST}    party: library\n    severity: warning\n    stricter: because\n",
        r"rules\[0\]\.stricter: a warning is not stricter than the text; hint: remove it",
    ),
    "lenient error": (
        RULES,
        f"{FIRST}    party: library\n    severity: error\n",
        f"{FIRST}    party: library\n    severity: error\n    lenient: because\n",
        r"rules\[0\]\.lenient: an error is not more lenient than the text; hint: remove it",
    ),
    "rule without a section": (
        RULES,
        "rules:\n",
        "rules:\n  - id: stream.round\n    party: both\n    severity: error\n"
        "    text: Round.\n    check: test\n",
        r"spec/rules/c-stream\.yaml:10: rules\[0\]: no section of spec/texts/ has rule "
        r"'stream\.round'",
    ),
    "unknown rule in a text": (
        TEXT,
        "dlpack-import.copy-none",
        "dlpack-import.copy-nothing",
        r"sections\[0\]\.rules\[\d\]: unknown rule 'dlpack-import\.copy-nothing'; hint: use an id",
    ),
    "unknown key in a text": (
        TEXT,
        "format: python",
        "format: python\ncolour: red",
        r"spec/texts/array-api-from-dlpack\.yaml:\d+: colour: unknown key 'colour'",
    ),
    "unknown format": (
        TEXT,
        "format: python",
        "format: word",
        r'format: "word" is unknown; hint: use one of rst, python, c-header',
    ),
    "address without a scheme": (
        TEXT,
        "url: https://",
        "url: ",
        r'url: "data-apis\.org/.* does not match the pattern',
    ),
    "short hash": (
        TEXT,
        'hash: "',
        'hash: "0',
        r'sections\[0\]\.hash: "0\w+" does not match the pattern; hint: match',
    ),
    "section twice": (
        "texts/array-api-methods.yaml",
        "name: __dlpack_device__",
        "name: __dlpack__",
        r"sections\[1\]\.name: '__dlpack__' is a duplicate; hint: put both into one entry",
    ),
    "unknown rule of a check": (
        DICTIONARY,
        "rules: [cai-stream.not-zero]",
        "rules: [cai-stream.not-zero, cai-stream.zero]",
        r"spec/cuda-array-interface\.yaml:\d+: checks\[23\]\.rules\[1\]: unknown rule "
        r"'cai-stream\.zero'; hint: use an id of spec/rules/cuda-array-interface\.yaml, or add",
    ),
    "check of a rule of another interface": (
        DICTIONARY,
        "rules: [cai-stream.not-zero]",
        "rules: [cai-stream.not-zero, dlpack-stream.cuda-not-zero]",
        r"checks\[23\]\.rules\[1\]: unknown rule 'dlpack-stream\.cuda-not-zero'; hint: use an id",
    ),
    "rule without a check": (
        DICTIONARY,
        "rules: [cai-stream.not-zero]",
        "rules: [cai-stream.values]",
        r"spec/rules/cuda-array-interface\.yaml:\d+: rules\[\d+\]\.check: no check of "
        r"spec/cuda-array-interface\.yaml has 'cai-stream\.not-zero'; hint: name it there",
    ),
    "rule with a check that says it has none": (
        "rules/cuda-array-interface.yaml",
        "text: The producer never sets `stream` to 0.\n    check: validator",
        "text: The producer never sets `stream` to 0.\n    check: test",
        r"rules\[\d+\]\.check: spec/cuda-array-interface\.yaml has a check for "
        r"'cai-stream\.not-zero'; hint: write 'check: validator'",
    ),
    "unknown key of a dictionary": (
        "rules/cuda-array-interface.yaml",
        "    about: __cuda_array_interface__.descr\n",
        "    about: __cuda_array_interface__.description\n",
        r"\.about: '__cuda_array_interface__\.description' is not defined; hint: name a struct,",
    ),
    "one file for two texts": (
        "texts/array-api-methods.yaml",
        "file: array_object.py",
        "file: creation_functions.py",
        r"file: 'creation_functions\.py' is already the file of 'array-api-from-dlpack'",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_rules_report_place_and_hint(name: str, scratch: Scratch) -> None:
    scratch.refuses(*SPOILED[name])


def test_every_interface_has_rules() -> None:
    spec = load_spec(REPOSITORY)
    families = {family.id for family in load_rulebook(REPOSITORY, spec).families}
    assert families >= {interface.id for interface in spec.interfaces}


REFERENCE = REPOSITORY / "docs" / "reference"
PAGES = sorted(REFERENCE.rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """Returns the link targets of a page."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    spelled = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    return spelled | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=[p.relative_to(REFERENCE).as_posix() for p in PAGES])
def test_reference_links_have_targets(page: Path) -> None:
    for target in re.findall(r"\]\((?!https:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.is_file(), target
        assert not anchor or anchor in anchors(other), target


def test_erratum_names_decided_rules() -> None:
    page = (REFERENCE / "errata.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")[1:]}
    for family in load_rulebook(REPOSITORY, load_spec(REPOSITORY)).families:
        for rule in family.rules:
            for erratum in rule.errata:
                assert f"[{rule.id}](rules/{family.id}.md#{rule.id})" in sections[erratum]
