"""The output of fletching-extract as typed data: one `Run` per language and target."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ProgramError, UsageError
from ..installation import run_program

READER = "fletching-extract"
# At least one triple for every layout class, byte order, and C library family that Arrow supports.
TARGETS = (
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "riscv64-linux-gnu",
    "powerpc64le-linux-gnu",
    "powerpc64-linux-gnu",
    "s390x-linux-gnu",
    "arm64-apple-macosx",
    "x86_64-pc-windows-msvc",
    "armv7-linux-gnueabihf",
    "wasm32-unknown-unknown",
    "mips-linux-gnu",
    "powerpc-linux-gnu",
    "riscv32-unknown-elf",
    "x86_64-linux-gnux32",
    "i686-pc-windows-msvc",
    "i686-linux-gnu",
    "i386-unknown-freebsd",
)


@dataclass(frozen=True)
class Place:
    file: str  # "their/abi.h": the header, or one that it includes
    line: int  # 12


@dataclass(frozen=True)
class HeaderField:
    name: str  # "sync_event"
    offset: int  # 96
    size: int  # 8
    bits: int | None  # 16: the width of a bit-field; None for other fields
    type: str  # "callback(ArrowArray*) -> void": the spec's spelling, without argument names
    place: Place


@dataclass(frozen=True)
class HeaderRecord:
    name: str  # "ArrowDeviceArray"
    size: int  # 128
    align: int  # 8
    packed: bool
    place: Place
    fields: tuple[HeaderField, ...]


@dataclass(frozen=True)
class HeaderMacro:
    name: str  # "ARROW_DEVICE_CPU"
    value: int | None  # 1; None if it is not an integer
    text: str  # "1"
    place: Place
    conditions: tuple[str, ...]  # ("!defined(ARROW_C_DEVICE_DATA_INTERFACE)",)


@dataclass(frozen=True)
class HeaderTypedef:
    name: str  # "ArrowDeviceType"
    type: str  # "int32", or the name of an enum
    is_enum: bool
    place: Place


@dataclass(frozen=True)
class HeaderEnumerator:
    name: str  # "kDLCUDA"
    value: int  # 2
    place: Place


@dataclass(frozen=True)
class HeaderEnum:
    name: str  # "DLDeviceType"
    place: Place
    enumerators: tuple[HeaderEnumerator, ...]


@dataclass(frozen=True)
class HeaderGuard:
    macro: str  # "ARROW_C_DEVICE_DATA_INTERFACE"
    place: Place
    end_line: int
    taken: bool  # False: another header had defined it


@dataclass(frozen=True)
class Run:
    """A header as seen in one language on one target."""

    language: str  # "c++"
    target: str  # "i686-linux-gnu"
    pointer_size: int  # 4
    int64_align: int  # 4: as a struct member
    diagnostics: tuple[str, ...]  # "abi.h:12:3: error: unknown type name 'foo'": the first three
    error_count: int
    guards: tuple[HeaderGuard, ...]
    macros: dict[str, HeaderMacro]
    skipped_macros: dict[str, HeaderMacro]  # in branches that were not taken
    typedefs: dict[str, HeaderTypedef]
    enums: tuple[HeaderEnum, ...]
    records: dict[str, HeaderRecord]
    defined: frozenset[str]  # the names of all records, including those with errors


def read_header(
    header: Path,
    languages: str | None,
    targets: Sequence[str],
    flags: Sequence[str],
    text: bytes | None = None,
) -> list[Run]:
    """Returns the runs of a header without errors.

    Without a choice of languages, a header that is valid only in C or only in C++ is read in that
    language. `text` is the content of a header that is not a file. Raises UsageError with the first
    diagnostics if no run, or a requested one, is valid.
    """
    chosen = ["c", "c++"] if languages is None else languages.split(",")
    runs = extract(header, chosen, targets, flags, text)
    clean = [language for language in chosen if not _errors(runs, language)]
    if not clean or (languages is not None and len(clean) < len(chosen)):
        first = next(run for run in runs if run.error_count)
        shown = "".join(f"\n  {line}" for line in first.diagnostics)
        count = f"{first.error_count} error{'s' if first.error_count > 1 else ''}"
        place = f"as {first.language} on {first.target}"
        raise UsageError(f"{header} has {count} {place}:{shown}{_hint(first)}")
    return [run for run in runs if run.language in clean]


def read_with_macro(
    header: Path,
    runs: Sequence[Run],
    macro: str,
    flags: Sequence[str],
    text: bytes | None = None,
) -> list[Run]:
    """Returns the same runs with the macro predefined, including runs with errors."""
    languages = tuple(dict.fromkeys(run.language for run in runs))
    targets = tuple(dict.fromkeys(run.target for run in runs))
    again = extract(header, languages, targets, ["-D", macro, *flags], text)
    by_name = {(run.language, run.target): run for run in again}
    return [by_name[run.language, run.target] for run in runs]


def _hint(run: Run) -> str:
    """Returns a hint for the most common reason: a missing include folder."""
    missing = any("file not found" in line for line in run.diagnostics)
    return "\n  name the folder of what it includes: -- -I FOLDER" if missing else ""


def _errors(runs: Sequence[Run], language: str) -> int:
    return sum(run.error_count for run in runs if run.language == language)


def extract(
    header: Path,
    languages: Sequence[str],
    targets: Sequence[str],
    flags: Sequence[str] = (),
    text: bytes | None = None,
) -> list[Run]:
    """Reads a header. Raises UsageError if the header cannot be read, ProgramError if the reader
    cannot."""
    command = [word for language in languages for word in ("--as", language)]
    command += [word for target in targets for word in ("--target", target)]
    name = f"./{header}" if str(header).startswith("-") else str(header)
    command += [name if text is None else "-", *(["--", *flags] if flags else [])]
    result = run_program(READER, command, text=text, capture=True)
    if result.returncode != 0:
        said = result.stderr.decode("utf-8", errors="replace").strip()
        raise UsageError(said.removeprefix(f"{READER}: ") or f"{header}: cannot be read")
    try:
        return [_run(run) for run in json.loads(result.stdout)["runs"]]
    except (ValueError, KeyError, TypeError):
        hint = "run 'tools/build extract', and look at FLETCHING_EXTRACT if it is set"
        raise ProgramError(
            f"{result.args[0]} is not a fletching-extract of this version; {hint}"
        ) from None


def _run(entry: dict[str, Any]) -> Run:
    model = entry["data_model"]
    return Run(
        language=entry["language"],
        target=entry["target"],
        pointer_size=model["pointer_size"],
        int64_align=model["int64_align"],
        diagnostics=tuple(
            _diagnostic(d) for d in entry["diagnostics"] if d["severity"] != "warning"
        ),
        error_count=entry["error_count"],
        guards=tuple(
            HeaderGuard(g["macro"], _place(g), g["end_line"], g["taken"]) for g in entry["guards"]
        ),
        macros={m["name"]: _macro(m) for m in entry["macros"] if not m["undefined"]},
        skipped_macros={m["name"]: _macro(m) for m in entry["skipped_macros"]},
        typedefs={
            t["name"]: HeaderTypedef(t["name"], t["type"], t["is_enum"], _place(t))
            for t in entry["typedefs"]
        },
        enums=tuple(_enum(e) for e in entry["enums"]),
        records={r["name"]: _record(r) for r in entry["records"] if r["complete"] and r["valid"]},
        defined=frozenset(r["name"] for r in entry["records"] if r["complete"]),
    )


def _diagnostic(entry: dict[str, Any]) -> str:
    where = f"{entry['file']}:{entry['line']}:{entry['column']}: " if entry["file"] else ""
    return f"{where}{entry['severity']}: {entry['text']}"


def _macro(entry: dict[str, Any]) -> HeaderMacro:
    return HeaderMacro(
        entry["name"],
        entry.get("value"),
        entry["text"],
        _place(entry),
        tuple(entry["conditions"]),
    )


def _enum(entry: dict[str, Any]) -> HeaderEnum:
    place = _place(entry)
    enumerators = (
        HeaderEnumerator(e["name"], e["value"], Place(place.file, e["line"]))
        for e in entry["enumerators"]
    )
    return HeaderEnum(entry["name"], place, tuple(enumerators))


def _record(entry: dict[str, Any]) -> HeaderRecord:
    place = _place(entry)
    return HeaderRecord(
        entry["name"],
        entry["size"],
        entry["align"],
        entry["packed"],
        place,
        tuple(_field(f, place.file) for f in entry["fields"]),
    )


def _field(entry: dict[str, Any], file: str) -> HeaderField:
    return HeaderField(
        entry["name"],
        entry["offset"],
        entry["size"],
        entry["bits"]["width"] if entry["bits"] else None,
        entry["canonical"],
        Place(file, entry["line"]),
    )


def _place(entry: dict[str, Any]) -> Place:
    return Place(entry["file"], entry["line"])
