"""Changes the spec of the CUDA Array Interface: the vectors must detect each change.

The vectors are replayed on the model with a changed spec, and at least one of them must fail.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.cuda_array_interface.dictionaries import DictionaryInterface
from fletching_generator.languages import cpp
from fletching_generator.render import render_module
from fletching_generator.spec.load import load_spec
from fletching_generator.spec.model import Spec

FILE = "cuda-array-interface.yaml"
HEADER = "cpp/include/fletching/detail/cuda_array/tables.hpp"
CAI = load_spec(REPOSITORY).cuda_array_interface

# old text, new text, expected error
SPOILED = {
    "unknown key": (
        "attribute: __cuda_array_interface__",
        "attribute: __cuda_array_interface__\nguard: CUDA",
        r"spec/cuda-array-interface\.yaml:\d+: guard: unknown key 'guard'; hint: use one of title,",
    ),
    "missing key": (
        "    type: tuple of integers\n    unit: elements\n",
        "    unit: elements\n",
        r"keys\[0\]: 'type' is missing; hint: add 'type: \.\.\.'",
    ),
    "a version left out": (
        "  - version: 1\n    doc: Adds 'mask'.\n",
        "",
        r"versions\[1\]\.version: 2 does not follow the version before it; hint: list every",
    ),
    "not the newest version": (
        "version: 3\ndoc:",
        "version: 2\ndoc:",
        r"version: 2 is not the newest of 'versions'; hint: write 3, or add the version to",
    ),
    "a key of a version to come": (
        "  - name: stream\n    since: 3",
        "  - name: stream\n    since: 4",
        r"keys\[7\]\.since: unknown version 4; hint: the newest version is 3",
    ),
    "a key that the checks do not know": (
        "  - name: mask\n    since: 1\n",
        "  - name: offset\n    since: 1\n",
        r'keys\[6\]\.name: "offset" is unknown; hint: use one of shape, typestr,',
    ),
    "a key twice": (
        "  - name: mask\n    since: 1\n",
        "  - name: descr\n    since: 1\n",
        r"keys\[6\]\.name: 'descr' is a duplicate; hint: rename or remove one",
    ),
    "required and None": (
        "    required: true\n    none: false\n    type: string",
        "    required: true\n    none: true\n    type: string",
        r"keys\[1\]\.none: 'typestr' is required, and may be None; hint: say 'none: false', or",
    ),
    "a change before the key": (
        "      - version: 2\n        doc: The address",
        "      - version: 0\n        doc: The address",
        r"keys\[2\]\.changes\[0\]\.version: 'data' cannot change in version 0; hint: its versions",
    ),
    "a byte order twice": (
        '{char: ">", name: big_endian',
        '{char: "<", name: big_endian',
        r"typestr\.orders\[1\]\.char: '<' is a duplicate",
    ),
    "a byte order that the checks ask for": (
        "name: irrelevant, doc",
        "name: none, doc",
        r"typestr\.orders: 'irrelevant' is missing; hint: the checks ask for it; add it",
    ),
    "a kind twice": (
        "{char: c, name: complex",
        "{char: f, name: complex",
        r"typestr\.kinds\[5\]\.char: 'f' is a duplicate",
    ),
    "a size that no item has": (
        "no_number: 8",
        "no_number: 16",
        r"typestr\.kinds\[8\]\.no_number: 16 is none of the sizes of 'O'; hint: use one of",
    ),
    "a unit twice": (
        "{text: ms, name: millisecond}",
        "{text: us, name: millisecond}",
        r"typestr\.units\[8\]\.text: 'us' is a duplicate",
    ),
    "a stream twice": (
        "value: 2\n    name: per_thread_default",
        "value: 1\n    name: per_thread_default",
        r"streams\[2\]\.value: '1' is a duplicate",
    ),
    "a stream's name twice": (
        "name: per_thread_default",
        "name: legacy_default",
        r"streams\[2\]\.name: 'legacy_default' is a duplicate",
    ),
    "a check that is not written": (
        "  - name: stream-zero",
        "  - name: stream-nought",
        r'checks\[23\]\.name: "stream-nought" is unknown; hint: use one of dictionary,',
    ),
    "a check twice": (
        "  - name: stream-zero",
        "  - name: stream-handle",
        r"checks\[24\]\.name: 'cuda-array-interface\.stream-handle' is a duplicate",
    ),
    "neither rules nor a reason": (
        "    rules: [cai-stream.not-zero]\n",
        "    rules: []\n",
        r"checks\[23\]\.rules: expected either rules or a reason; hint:",
    ),
    "rules and a reason": (
        "    rules: [cai-stream.not-zero]\n",
        "    rules: [cai-stream.not-zero]\n    beyond: because\n",
        r"checks\[23\]\.rules: expected either rules or a reason; hint:",
    ),
    "a check before its key": (
        "    key: stream\n    severity: error\n    since: 3\n    typed: false",
        "    key: stream\n    severity: error\n    since: 2\n    typed: false",
        r"checks\[22\]\.since: 'stream' does not exist in version 2; hint: it has been there since",
    ),
    "a check of a version to come": (
        "    key: stream\n    severity: error\n    since: 3\n    typed: false",
        "    key: stream\n    severity: error\n    since: 4\n    typed: false",
        r"checks\[22\]\.since: unknown version 4; hint: the newest version is 3",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_spec_reports_place_and_hint(name: str, scratch: Scratch) -> None:
    scratch.refuses(FILE, *SPOILED[name])


def test_rejects_key_without_check(scratch: Scratch) -> None:
    path = scratch.root / "spec" / FILE
    text = path.read_text(encoding="utf-8").replace("    key: descr\n", "    key: typestr\n")
    path.write_text(text, encoding="utf-8")
    assert "keys[5].name: no check reads 'descr'; hint: add a check" in scratch.mistakes()[0]


def test_rejects_check_of_unknown_key(scratch: Scratch) -> None:
    path = scratch.root / "spec" / FILE
    text = path.read_text(encoding="utf-8")
    start, end = text.index("  - name: mask\n"), text.index("  - name: stream\n")
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    found = scratch.mistakes()
    assert len(found) == 3
    assert "checks[19].key: unknown key 'mask'; hint: use one of shape, typestr," in found[0]


def test_rejects_missing_file(scratch: Scratch) -> None:
    (scratch.root / "spec" / FILE).unlink()
    assert scratch.mistakes() == [f"spec/{FILE}:1: (whole file): the file is missing; hint: add it"]


# --- Faults that the vectors notice --------------------------------------------------------------


def without(index: int, *path: str) -> DictionaryInterface:
    """The interface without one entry of one of its lists, or of one of its type strings' lists."""
    owner: Any = CAI.typestr if len(path) == 2 else CAI
    entries = getattr(owner, path[-1])
    rest = {path[-1]: (*entries[:index], *entries[index + 1 :])}
    changed = dataclasses.replace(owner, **rest)
    return dataclasses.replace(CAI, typestr=changed) if len(path) == 2 else changed


def with_entry(index: int, name: str, **changes: Any) -> DictionaryInterface:
    """The interface with one entry of a list changed."""
    entries = list(getattr(CAI, name))
    entries[index] = dataclasses.replace(entries[index], **changes)
    return dataclasses.replace(CAI, **{name: tuple(entries)})  # type: ignore[arg-type]


def with_kind(index: int, **changes: Any) -> DictionaryInterface:
    kinds = list(CAI.typestr.kinds)
    kinds[index] = dataclasses.replace(kinds[index], **changes)
    return dataclasses.replace(CAI, typestr=dataclasses.replace(CAI.typestr, kinds=tuple(kinds)))


Mutants = Iterator[tuple[str, DictionaryInterface]]


def of_checks() -> Mutants:
    key_since = {key.name: key.since for key in CAI.keys}
    for i, check in enumerate(CAI.checks):
        yield f"no check {check.name}", without(i, "checks")
        # A check cannot be older than its key; the meaning check rejects that.
        if check.since > key_since.get(check.key or "", 0):
            yield f"{check.name} a version earlier", with_entry(i, "checks", since=check.since - 1)
        if check.since:
            yield f"{check.name} a version later", with_entry(i, "checks", since=check.since + 1)


def of_type_strings() -> Mutants:
    for i, order in enumerate(CAI.typestr.orders):
        if order.name != "irrelevant":  # without it, there is no module
            yield f"no byte order {order.name}", without(i, "typestr", "orders")
    for i, unit in enumerate(CAI.typestr.units):
        yield f"no unit {unit.name}", without(i, "typestr", "units")
    for i, kind in enumerate(CAI.typestr.kinds):
        yield f"no kind {kind.name}", without(i, "typestr", "kinds")
        if kind.sizes:
            yield f"any size of {kind.name}", with_kind(i, sizes=())
        if kind.has_unit:
            yield f"no unit of {kind.name}", with_kind(i, has_unit=False)
        if kind.no_number:
            yield f"a number of {kind.name}", with_kind(i, no_number=None)
            yield f"another size of {kind.name}", with_kind(i, no_number=4)


def of_counts() -> Mutants:
    for i, kind in enumerate(CAI.typestr.kinds):
        if kind.char in "tUV":
            for counts in sorted({"bits", "bytes", "characters"} - {kind.counts}):
                yield f"{kind.name} counts {counts}", with_kind(i, counts=counts)


def of_keys() -> Mutants:
    for i, key in enumerate(CAI.keys):
        yield f"None of {key.name}", with_entry(i, "keys", none=not key.none)
        if key.required:
            yield f"{key.name} not required", with_entry(i, "keys", required=False)
        else:
            yield f"{key.name} required", with_entry(i, "keys", required=True)
        if key.since:
            yield f"{key.name} a version earlier", with_entry(i, "keys", since=key.since - 1)
        if key.since < CAI.version:
            yield f"{key.name} a version later", with_entry(i, "keys", since=key.since + 1)


def of_numbers() -> Mutants:
    for i, stream in enumerate(CAI.streams):
        if stream.allowed:
            yield f"stream {stream.value} refused", with_entry(i, "streams", allowed=False)
        else:
            yield f"stream {stream.value} allowed", with_entry(i, "streams", allowed=True)
    for version in (CAI.version - 1, CAI.version + 1):
        yield f"version {version}", dataclasses.replace(CAI, version=version)
    for name in ("masks", "item_bytes"):
        limit = getattr(CAI.limits, name)
        for changed in (limit - 1, limit + 1):
            limits = dataclasses.replace(CAI.limits, **{name: changed})
            yield f"limit of {changed} {name}", dataclasses.replace(CAI, limits=limits)


MUTANTS = {
    name: mutant
    for family in (of_checks, of_type_strings, of_counts, of_keys, of_numbers)
    for name, mutant in family()
}


@pytest.fixture(scope="module")
def replay() -> Iterator[Any]:
    """Replays the vectors on the model of an interface; returns the names of the failing ones."""
    folders = REPOSITORY / "bindings/python/tests", REPOSITORY / "tests/cuda_array_interface"
    sys.path[:0] = map(str, folders)
    import cuda_array_interface_vectors  # type: ignore[import-not-found]  # noqa: PLC0415
    import model  # type: ignore[import-not-found]  # noqa: PLC0415

    vectors = cuda_array_interface_vectors.load()

    def failing(interface: DictionaryInterface) -> list[str]:
        checks = model.Model(interface)
        return [v.name for v in vectors if lines(checks.check(v.interface)) != v.breaks]

    yield failing
    del sys.path[:2]


def lines(violations: Any) -> list[str]:
    return [f"{v.rule.partition('.')[2]} {v.key}".strip() for v in violations]


def test_valid_spec_passes(replay: Any) -> None:
    assert replay(CAI) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_vectors_detect_mutant(name: str, replay: Any) -> None:
    assert replay(MUTANTS[name]) != []


def test_header_has_checks_of_spec(spec: Spec) -> None:
    for i, check in enumerate(CAI.checks):
        for interface, there in ((CAI, check.typed), (without(i, "checks"), False)):
            changed = dataclasses.replace(spec, cuda_array_interface=interface)
            texts = render_module(cpp, changed)
            assert (f'{{"{check.id}",' in texts[HEADER]) == there


def test_model_and_header_implement_every_check() -> None:
    model = REPOSITORY / "tests" / "cuda_array_interface" / "model.py"
    header = REPOSITORY / "cpp" / "include" / "fletching" / "cuda_array_interface.hpp"
    for check in CAI.checks:
        assert f"def {check.name}(" in model.read_text(encoding="utf-8")
        if check.typed:
            assert f"Found {check.name}(" in header.read_text(encoding="utf-8")
