"""Brings spec/devices.yaml up to a dlpack.h: adds the devices that are new there, in place.

The file is edited as text, so that comments, order and formatting stay. Whatever would change the
meaning of a number that is in use is refused, and then nothing is written.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import Mistake, SpecError, UsageError
from .facts import HeaderEnum, HeaderEnumerator, Run, read_header
from .files import replace_file
from .load import load_spec
from .model import Access, Buffers, Device, Event, Handles, Spec

_ENUM = "DLDeviceType"
_FILE = "spec/devices.yaml"
_UNKNOWN = "The header does not say."
_INT32 = range(-(2**31), 2**31)
# The C and the C++ reading of the enum have to agree; one target is enough for its values.
_TARGET = "x86_64-linux-gnu"


@dataclass(frozen=True)
class Result:
    """What a header brings."""

    version: str  # "1.3": of the header
    added: tuple[Device, ...]  # by value


def sync(root: Path, header: Path, flags: Sequence[str], dry_run: bool) -> Result:
    """Reads the header, compares, and writes the new devices unless it is a dry run."""
    spec = load_spec(root)
    runs = read_header(header, None, (_TARGET,), flags)
    found = _device_enum(header, runs)
    version = _version(runs[0])
    _refuse(spec, found)
    known = {device.dlpack for device in spec.devices}
    new = sorted((e for e in found.enumerators if e.name not in known), key=lambda e: e.value)
    added = tuple(_device(enumerator, version) for enumerator in new)
    if added:
        text = _insert((root / _FILE).read_text(encoding="utf-8"), added, spec)
        _check(root, text)
        if not dry_run:
            replace_file(root / _FILE, text)
    return Result(version, added)


def _device_enum(header: Path, runs: Sequence[Run]) -> HeaderEnum:
    enums = [enum for run in runs for enum in run.enums if enum.name == _ENUM]
    if len(enums) != len(runs):
        raise UsageError(f"{header} is no dlpack.h: it declares no enum {_ENUM}")
    values = {tuple((e.name, e.value) for e in enum.enumerators) for enum in enums}
    if len(values) != 1:
        raise UsageError(f"{header}: {_ENUM} has other values in C than in C++")
    return enums[0]


def _version(run: Run) -> str:
    """`1.3` from the header's macros; headers before 1.0 spell it in another way or not at all."""
    parts = [run.macros.get(f"DLPACK_{part}_VERSION") for part in ("MAJOR", "MINOR")]
    if all(part is not None and part.value is not None for part in parts):
        return ".".join(str(part.value) for part in parts if part is not None)
    return "0.0"


def _refuse(spec: Spec, found: HeaderEnum) -> None:
    """Raises SpecError with everything in the header that cannot be taken over."""
    mistakes = [
        Mistake(enumerator.place.file, enumerator.place.line, enumerator.name, problem, mend)
        for enumerator in found.enumerators
        for problem, mend in _problems(spec, found, enumerator)
    ]
    there = {enumerator.name for enumerator in found.enumerators}
    for device in spec.devices:
        if device.dlpack not in there:
            problem = f"is not in the header, but the spec has it as {device.value}"
            mend = "a device is never removed; use a newer header, or mend its 'dlpack' in the spec"
            place = found.place
            mistakes.append(Mistake(place.file, place.line, device.dlpack, problem, mend))
    if mistakes:
        raise SpecError(*mistakes)


def _problems(spec: Spec, found: HeaderEnum, enumerator: HeaderEnumerator) -> list[tuple[str, str]]:
    value = enumerator.value
    same = next((d for d in spec.devices if d.dlpack == enumerator.name), None)
    owner = next((d for d in spec.devices if d.value == value), None)
    twin = next(
        (e for e in found.enumerators if e.value == value and e.name != enumerator.name), None
    )
    problems = []
    if value not in _INT32:
        problems.append((f"{value} does not fit into an int32", "a device type is an int32"))
    if same is not None and same.value != value:
        mend = "a device never changes its number; is this header a fork?"
        problems.append((f"is {value}, but the spec has it as {same.value}", mend))
    if twin is not None:
        problems.append((f"has the number {value} of {twin.name}", "one number, one name"))
    elif same is None and owner is not None:
        mend = "one number, one device; is this header a fork?"
        problems.append((f"has the number {value} of '{owner.name}' in the spec", mend))
    if same is None and any(hole.value == value for hole in spec.holes):
        mend = "take it out of 'holes' in the spec if DLPack really gives it out"
        problems.append((f"has the number {value}, which is never given out", mend))
    return problems


def _device(enumerator: HeaderEnumerator, version: str) -> Device:
    """The entry of a new device, with what can be known of it from the header."""
    name = enumerator.name.removeprefix("kDL")
    return Device(
        name=name.lower(),
        value=enumerator.value,
        doc=f"The device that DLPack calls {name}.",
        arrow=None,
        dlpack_only="Arrow has not taken this device over from DLPack yet.",
        dlpack=enumerator.name,
        since_arrow=None,
        since_dlpack=version,
        device_id="defined by the runtime of the device",
        buffers=Buffers("unknown", None, _UNKNOWN),
        accessible_from=Access((), None, _UNKNOWN),
        handles=Handles((), _UNKNOWN),
        runtime=None,
        event=Event("none", None, "not_in_arrow"),
    )


def _entry(device: Device) -> str:
    return f"""\
  - name: {device.name}
    value: {device.value}
    doc: {device.doc}
    dlpack_only: {device.dlpack_only}
    dlpack: {device.dlpack}
    since: {{dlpack: "{device.since_dlpack}"}}
    device_id: {device.device_id}
    buffers: {{are: {device.buffers.are}, doc: {device.buffers.doc}}}
    accessible_from: {{devices: [], unknown: {device.accessible_from.unknown}}}
    handles: {{needed: [], unknown: {device.handles.unknown}}}
    event: {{pointer: {device.event.pointer}, note: {device.event.note}}}
"""


def _insert(text: str, added: Sequence[Device], spec: Spec) -> str:
    """Each entry before the first one with a greater value, else at the end."""
    for device in added:
        after = [d for d in spec.devices if d.value > device.value]
        if after:
            start = text.index(f"  - name: {after[0].name}\n")
            text = text[:start] + _entry(device) + "\n" + text[start:]
        else:
            text = text.rstrip("\n") + "\n\n" + _entry(device)
    return text


def _check(root: Path, text: str) -> None:
    """Raises SpecError when the spec would not be sound with this text."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(root / "spec", Path(scratch) / "spec")
        (Path(scratch) / _FILE).write_text(text, encoding="utf-8")
        load_spec(Path(scratch))
