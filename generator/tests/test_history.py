"""Replays history: syncing the devices of DLPack 0.6 with today's header yields today's spec.

The header provides names, numbers and order. A person decides the remaining facts, and all other
differences must follow from them.
"""

from __future__ import annotations

import difflib
import re
import shutil
from pathlib import Path

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator.cli import main
from fletching_generator.headers.dlpack_version import spec_version
from fletching_generator.spec.model import Device, Spec

LAST_OF_DLPACK_0_6 = 13
# The keys that `fletching sync` fills in from the header; a person decides the others.
FROM_HEADER = ("name", "value", "dlpack")
LANGUAGES = ("cpp/", "bindings/rust/", "bindings/go/", "bindings/java/", "bindings/python/")

Entries = dict[str, list[str]]  # the lines of each device's entry in devices.yaml, by name


def new_devices(spec: Spec) -> list[Device]:
    return [device for device in spec.devices if device.value > LAST_OF_DLPACK_0_6]


def entries(text: str) -> Entries:
    starts = [match.start() for match in re.finditer(r"^  - name: ", text, re.MULTILINE)]
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    return {part.split()[2]: part.rstrip("\n").split("\n") for part in parts}


def key(line: str) -> str:
    """Returns the key of an entry's line; empty for a nested line."""
    found = re.match(r"(?:  - |    )(\w+):", line)
    return found[1] if found else ""


def decided(draft: list[str], committed: list[str]) -> list[str]:
    """Returns an entry written by sync, with a person's facts instead of the draft's."""
    brought = {key(line): line for line in draft if key(line) in FROM_HEADER}
    return [brought.get(key(line), line) for line in committed]


@pytest.fixture
def replayed(
    scratch: Scratch, spec: Spec, dlpack: Path, capsys: pytest.CaptureFixture[str]
) -> Scratch:
    """Returns a scratch root with the sources of the bundle, reduced and synced."""
    for pattern in ("cpp/core/**/*.[ch]", "cpp/include/fletching/*.h"):
        for source in REPOSITORY.glob(pattern):
            target = scratch.root / source.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    path = scratch.root / "spec" / "devices.yaml"
    text = path.read_text(encoding="utf-8")
    first = text.index(f"  - name: {new_devices(spec)[0].name}\n")
    reserved = text.index(f"  - name: {spec.unreleased_devices[0].name}\n")
    rest = text[reserved:]
    for device in new_devices(spec):  # new devices may follow the reserved ones
        rest = re.sub(rf"  - name: {device.name}\n(?:    .*\n)*\n?", "", rest)
    path.write_text(text[:first] + rest.rstrip("\n") + "\n", encoding="utf-8")
    version, minor = "name: DLPACK_MINOR_VERSION\n    value: ", spec_version(spec)[1]
    scratch.replace("dlpack.yaml", f"{version}{minor}", f"{version}0")
    assert [d.value for d in scratch.load().devices] == [1, 2, 3, 4, *range(7, 14)]
    assert main(["--root", str(scratch.root), "sync", str(dlpack)]) == 0
    scratch.replace("dlpack.yaml", f"{version}0", f"{version}{minor}")
    said = capsys.readouterr().out
    for device in new_devices(spec):
        assert f"{device.dlpack} = {device.value} added to spec/devices.yaml" in said
    return scratch


def generated(root: Path) -> dict[str, bytes]:
    """Returns all files that `fletching generate` writes into an empty root."""
    assert main(["--root", str(root), "generate"]) == 0
    files = [path for path in root.rglob("*") if path.is_file()]
    texts = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
    return {name: text for name, text in texts.items() if not name.startswith("spec/")}


def test_replay_with_decisions_equals_committed_files(replayed: Scratch, spec: Spec) -> None:
    path = replayed.root / "spec" / "devices.yaml"
    committed = (REPOSITORY / "spec" / "devices.yaml").read_text(encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    for name, draft in entries(text).items():
        lines = entries(committed)[name]
        text = text.replace("\n".join(draft), "\n".join(decided(draft, lines)))
    path.write_text(text, encoding="utf-8")
    assert text == committed
    files = generated(replayed.root)
    assert len({name for name in files if name.startswith(LANGUAGES)}) > len(LANGUAGES)
    different = [name for name, text in files.items() if (REPOSITORY / name).read_bytes() != text]
    assert different == []


def test_replay_without_decisions_differs_for_new_devices(replayed: Scratch, spec: Spec) -> None:
    new = new_devices(spec)
    old = [device for device in spec.devices if device not in new]
    assert [d for d in replayed.load().devices if d.value <= LAST_OF_DLPACK_0_6] == old
    about_new = re.compile("|".join(device.name for device in new), re.IGNORECASE)
    about_old = re.compile("|".join(rf"\b({d.arrow}|{d.dlpack})\b|[\"`]{d.name}[\"`]" for d in old))
    different = set()
    for name, text in generated(replayed.root).items():
        committed = (REPOSITORY / name).read_text(encoding="utf-8")
        for hunk in hunks(lines_of(committed), lines_of(text.decode())):
            different.add(name)
            changed = [line for line in hunk if line.startswith(("+", "-"))]
            assert about_new.search("\n".join([name, *hunk])), f"{name}: {hunk}"
            assert not about_old.search("\n".join(changed)), f"{name}: {hunk}"
    for language in LANGUAGES:
        assert any(name.startswith(language) for name in different), language


def lines_of(text: str) -> list[str]:
    """Splits into lines, without the lengths of C++ tables, which follow from their rows."""
    return re.sub(r"(?<=std::array<)(\w+), \d+>", r"\1>", text).splitlines()


def hunks(old: list[str], new: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for line in list(difflib.unified_diff(old, new, lineterm=""))[2:]:
        if line.startswith("@@"):
            found.append([])
        found[-1].append(line)
    return found
