"""Updates the spec from a dlpack.h: adds new devices and data-type codes in place.

The files are edited as text, to keep comments, order and formatting. A change of the meaning of an
existing number is rejected, and then no file is written.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Mistake, SpecError, UsageError
from ..files import replace_file
from ..reading.types import SCALAR_SIZES
from ..spec.load import load_spec
from ..spec.model import Spec, TypedefDeclaration
from .dlpack_version import Version, header_version, spec_version
from .facts import HeaderEnum, HeaderEnumerator, Run, read_header

_DEVICES = "DLDeviceType"
# Both the C and the C++ reading of an enum must agree; one target is enough for its values.
_TARGET = "x86_64-linux-gnu"


class RefusedError(SpecError):
    """The header contradicts the spec."""


@dataclass(frozen=True)
class Registry:
    """A list of numbers in the spec, and its enum in dlpack.h."""

    declared: TypedefDeclaration
    unassigned: frozenset[int]  # {5, 6}
    file: str  # "spec/devices.yaml"
    noun: str  # "device"

    @property
    def enum(self) -> str:
        return self.declared.type.name  # "DLDeviceType"

    @property
    def values(self) -> range:
        """The numbers that fit into the field."""
        scalar = self.declared.type.scalar.name
        bits = 8 * SCALAR_SIZES[scalar]
        return (
            range(2**bits) if scalar.startswith("u") else range(-(2 ** (bits - 1)), 2 ** (bits - 1))
        )


@dataclass(frozen=True)
class Change:
    """A new entry, or the release of an unreleased one."""

    registry: Registry
    name: str  # "kDLNextThing"
    value: int  # 42
    label: str  # "nextthing": the printed name
    new: bool


@dataclass(frozen=True)
class Result:
    """The changes found in a header."""

    changes: tuple[Change, ...]  # devices first, ordered by value
    since: str | None  # "1.4": the DLPack release; None if the header is from its main branch
    absent: tuple[str, ...]  # enums that the header does not declare


def sync(root: Path, header: Path, flags: Sequence[str], dry_run: bool) -> Result:
    """Reads the header, compares it, and writes the changes unless it is a dry run."""
    spec = load_spec(root)
    runs = read_header(header, None, (_TARGET,), flags)
    found = {r.enum: _read_enum(header, runs, r.enum) for r in _registries(spec)}
    if found[_DEVICES] is None:
        raise UsageError(f"{header}: not a dlpack.h: expected enum {_DEVICES}")
    pairs = [(r, enum) for r in _registries(spec) if (enum := found[r.enum]) is not None]
    _refuse(pairs)
    since = _since(spec_version(spec), header_version(runs[0]))
    changes = tuple(change for r, enum in pairs for change in _changes(r, enum, since))
    texts = _edited(root, changes, since)
    if texts:
        try:
            _check(root, texts)
        except SpecError as error:
            raise RefusedError(*error.mistakes) from error
        if not dry_run:
            for file, text in texts.items():
                replace_file(root / file, text)
    return Result(changes, since, tuple(name for name, enum in found.items() if enum is None))


def _registries(spec: Spec) -> list[Registry]:
    unassigned = frozenset(number.value for number in spec.unassigned)
    devices = next(t for t in spec.typedefs if t.from_devices)
    return [
        Registry(devices, unassigned, "spec/devices.yaml", "device"),
        Registry(spec.data_type_codes, frozenset(), "spec/dlpack.yaml", "data-type code"),
    ]


def _read_enum(header: Path, runs: Sequence[Run], name: str) -> HeaderEnum | None:
    enums = [enum for run in runs for enum in run.enums if enum.name == name]
    values = {tuple((e.name, e.value) for e in enum.enumerators) for enum in enums}
    if enums and (len(enums) != len(runs) or len(values) != 1):
        raise UsageError(f"{header}: {name}: values differ between C and C++")
    return enums[0] if enums else None


def _since(known: Version, found: Version) -> str | None:
    """Returns the version of a release that is newer than the spec.

    Between two releases, DLPack's header has the number of the earlier release, which did not
    contain the changes.
    """
    return "{}.{}".format(*found) if found > known else None


# --- Rejected changes --------------------------------------------------------------------------


def _refuse(pairs: Sequence[tuple[Registry, HeaderEnum]]) -> None:
    """Raises RefusedError with all contradictions between the header and the spec."""
    mistakes = []
    for registry, enum in pairs:
        mistakes += [
            Mistake(enumerator.place.file, enumerator.place.line, enumerator.name, problem, hint)
            for enumerator in enum.enumerators
            for problem, hint in _problems(registry, enum, enumerator)
        ]
        there = {enumerator.name for enumerator in enum.enumerators}
        for known in registry.declared.enumerators:
            if known.name not in there:
                problem = f"is not in the header, but the spec has it as {known.value}"
                hint = f"a {registry.noun} is never removed; use a newer header, or fix the spec"
                place = enum.place
                mistakes.append(Mistake(place.file, place.line, known.name, problem, hint))
    if mistakes:
        raise RefusedError(*mistakes)


def _problems(
    registry: Registry, found: HeaderEnum, enumerator: HeaderEnumerator
) -> list[tuple[str, str]]:
    value = enumerator.value
    known = registry.declared.known
    same = next((k for k in known if k.name == enumerator.name), None)
    owner = next((k for k in known if k.value == value), None)
    twin = next(
        (e for e in found.enumerators if e.value == value and e.name != enumerator.name), None
    )
    problems = []
    if value not in registry.values:
        scalar = registry.declared.type.scalar.name
        problems.append((f"{value} does not fit", f"a {registry.noun} is of type {scalar}"))
    if same is not None and same.value != value:
        hint = f"a {registry.noun} never changes its number; is this header a fork?"
        if same.unreleased:
            hint = "correct the entry in the spec if DLPack has changed it before the release"
        problems.append((f"is {value}, but the spec has it as {same.value}", hint))
    if twin is not None:
        problems.append((f"has the number {value} of {twin.name}", "one number, one name"))
    elif same is None and owner is not None:
        hint = f"one number, one {registry.noun}; is this header a fork?"
        reserved = ", which is reserved until DLPack releases it" if owner.unreleased else ""
        problem = f"has the number {value} of '{owner.label}' in the spec{reserved}"
        problems.append((problem, hint))
    if same is None and value in registry.unassigned:
        hint = "remove it from 'unassigned' in the spec if DLPack has assigned it"
        problems.append((f"has the number {value}, which is never assigned", hint))
    return problems


# --- Written changes ---------------------------------------------------------------------------


def _changes(registry: Registry, enum: HeaderEnum, since: str | None) -> list[Change]:
    known = {enumerator.name: enumerator for enumerator in registry.declared.known}
    changes = []
    for found in sorted(enum.enumerators, key=lambda e: e.value):
        there = known.get(found.name)
        if there is None:
            label = _label(found.name, registry)
            changes.append(Change(registry, found.name, found.value, label, new=True))
        elif there.unreleased and since is not None:
            changes.append(Change(registry, found.name, found.value, there.label, new=False))
    return changes


def _label(name: str, registry: Registry) -> str:
    """Returns `nextthing` for the device kDLNextThing, `next_thing` for a data-type code."""
    stem = name.removeprefix("kDL")
    if not registry.declared.from_devices:
        stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem)
    return stem.lower()


def _edited(root: Path, changes: Sequence[Change], since: str | None) -> dict[str, str]:
    """Returns the new contents of the changed files."""
    texts: dict[str, str] = {}
    for change in changes:
        file = change.registry.file
        text = texts.get(file) or (root / file).read_text(encoding="utf-8")
        of_devices = change.registry.declared.from_devices
        version = f'{{dlpack: "{since}"}}' if of_devices else f'"{since}"'
        release = "unreleased: true" if since is None else f"since: {version}"
        if not change.new:
            texts[file] = _release(text, change, release)
        else:
            texts[file] = (_insert_device if of_devices else _insert_code)(text, change, release)
    return texts


def _release(text: str, change: Change, release: str) -> str:
    """Replaces `unreleased` in the entry with the version."""
    name = f"name: {change.label}\n" if change.registry.declared.from_devices else change.name
    before, found, rest = text.partition(name)
    return before + found + rest.replace("unreleased: true", release, 1)


def _insert_device(text: str, device: Change, release: str) -> str:
    """Inserts the entry before the first one with a greater value, or at the end."""
    stem = device.name.removeprefix("kDL")
    entry = f"""\
  - name: {device.label}
    value: {device.value}
    doc: The DLPack device {stem}.
    dlpack_only: Arrow has not added this DLPack device yet.
    dlpack: {device.name}
    {release}
    device_id: defined by the device's runtime
    buffers: {{are: unknown, doc: The DLPack header does not describe the memory.}}
    accessible_from: {{devices: [], unknown: The DLPack header does not describe the memory.}}
    handles: {{needed: [], unknown: The DLPack header does not describe the handles.}}
    event: {{pointer: none, note: not_in_arrow}}
"""
    known = device.registry.declared.known
    after = min((k for k in known if k.value > device.value), key=lambda k: k.value, default=None)
    if after is None:
        return text.rstrip("\n") + "\n\n" + entry
    start = text.index(f"  - name: {after.label}\n")
    return text[:start] + entry + "\n" + text[start:]


def _insert_code(text: str, code: Change, release: str) -> str:
    """Inserts the entry before the first one with a greater value, or after the last one."""
    stem = code.name.removeprefix("kDL")
    entry = (
        f"      - {{name: {code.name}, label: {code.label}, value: {code.value}, "
        f'{release}, doc: "The DLPack type {stem}."}}\n'
    )
    entries = list(re.finditer(r"^      - .*\n(?:        .*\n)*", text, re.MULTILINE))
    of_code = [(m, _value_of(m[0])) for m in entries if re.search(r"\bname: kDL", m[0])]
    after = [match for match, value in of_code if value > code.value]
    start = after[0].start() if after else of_code[-1][0].end()
    return text[:start] + entry + text[start:]


def _value_of(entry: str) -> int:
    found = re.search(r"\bvalue: (\d+)", entry)
    assert found is not None  # required by the schema
    return int(found[1])


def _check(root: Path, texts: dict[str, str]) -> None:
    """Raises SpecError if the spec would not be valid with these file contents."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(root / "spec", Path(scratch) / "spec")
        for file, text in texts.items():
            (Path(scratch) / file).write_text(text, encoding="utf-8")
        load_spec(Path(scratch))
