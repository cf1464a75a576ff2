"""The header commands: `fletching check-header` and `fletching sync`."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from ..errors import CANNOT_RUN, FINE, FOUND, ProgramError, UsageError
from ..installation import require_clone
from ..spec.load import load_declarations
from ..spec.model import Declarations
from .check_header import compare
from .facts import TARGETS, Run, read_header, read_with_macro
from .findings import Report
from .report import as_json, as_text
from .sync import RefusedError, Result, sync

# The name of standard input in reports.
_STANDARD_INPUT = Path("<stdin>")


@dataclass(frozen=True)
class _Checked:
    """One header, with its report or the error."""

    header: Path
    runs: Sequence[Run] = ()
    report: Report | None = None
    error: str = ""

    @property
    def code(self) -> int:
        if self.report is None or not self.report.declared:
            return CANNOT_RUN
        return FOUND if self.report.wrong else FINE


def run_check_header(root: Path, options: argparse.Namespace) -> int:
    spec = load_declarations(root)
    known = [interface.id for interface in spec.interfaces]
    for name in options.interface:
        if name not in known:
            raise UsageError(f"no interface '{name}'; use one of {', '.join(known)}")
    headers = list(dict.fromkeys(options.header))
    results = []
    for header in headers:
        results.append(_check(spec, header, options))
        if not options.json:
            _print_text(results[-1], options)
    if options.json:
        found = [_as_json(result) for result in results]
        print(json.dumps({"ok": all(h["ok"] for h in found), "headers": found}, indent=2))
    elif len(results) > 1:
        print(_count(results))
    return max(result.code for result in results)


def _check(spec: Declarations, header: Path, options: argparse.Namespace) -> _Checked:
    """Raises ProgramError, which is about all headers."""
    targets = TARGETS if options.targets == "all" else tuple(options.targets.split(","))
    text = _standard_input() if str(header) == "-" else None
    name = header if text is None else _STANDARD_INPUT
    flags = [*options.flag, *options.flags]
    try:
        runs = read_header(name, options.languages, targets, flags, text)
        again = partial(read_with_macro, name, runs, flags=flags, text=text)
        return _Checked(name, runs, compare(spec, runs, options.interface, again))
    except ProgramError:
        raise
    except UsageError as error:
        return _Checked(name, error=str(error))


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UsageError(f"cannot read {_STANDARD_INPUT}: it is closed")
    return sys.stdin.buffer.read()


def _print_text(result: _Checked, options: argparse.Namespace) -> None:
    if result.report is None:
        sys.stdout.flush()  # keeps the order of the headers
        print(f"fletching: {result.error}", file=sys.stderr)
    else:
        print(as_text(result.header, result.report, result.runs, options.paint), end="")


def _as_json(result: _Checked) -> dict[str, object]:
    if result.report is None:
        return {"file": str(result.header), "ok": False, "error": result.error}
    return {**as_json(result.header, result.report, result.runs), "error": None}


def _count(results: Sequence[_Checked]) -> str:
    count = Counter(result.code for result in results)
    return (
        f"{len(results)} headers: {count[FINE]} agree, {count[FOUND]} differ, "
        f"{count[CANNOT_RUN]} not compared"
    )


# Hints about facts that headers do not contain, by the kind of the new entry.
_DECISIONS = {
    "device": (
        "In spec/devices.yaml: is the name right; what is it in a sentence; does Arrow have a "
        "macro for it\n(then 'arrow:' instead of 'dlpack_only:'); what is 'device_id'; what are "
        "its buffers, what can access\nthem and which handles are needed; which event and which "
        "runtime does it have."
    ),
    "data-type code": "In spec/dlpack.yaml: is the label right; what is it in a sentence.",
}
_RELEASED = (
    "Whether 'since' is the right version of DLPack, and whether DLPACK_MINOR_VERSION in "
    "spec/dlpack.yaml follows."
)
_UNRELEASED = (
    "The header is no newer release of DLPack than spec/dlpack.yaml: new numbers are reserved. If "
    "a release\nhas one, write 'since' in the place of 'unreleased' by hand."
)


def run_sync(root: Path, options: argparse.Namespace) -> int:
    if not options.dry_run:
        require_clone(root, "sync without --dry-run")
    try:
        result = sync(root, options.header, options.flags, options.dry_run)
    except RefusedError as error:
        if options.json:
            print(json.dumps(_refused_json(options.header, error), indent=2))
        else:
            print(error, file=sys.stderr)
        return FOUND
    if options.json:
        print(json.dumps(_synced_json(result, options), indent=2))
    else:
        _print_synced(result, options)
    return FINE


def _refused_json(header: Path, error: RefusedError) -> dict[str, object]:
    mistakes = [asdict(mistake) for mistake in error.mistakes]
    return {"file": str(header), "ok": False, "mistakes": mistakes}


def _synced_json(result: Result, options: argparse.Namespace) -> dict[str, object]:
    return {
        "file": str(options.header),
        "ok": True,
        "mistakes": [],
        "since": result.since,
        "absent": list(result.absent),
        "written": bool(result.changes) and not options.dry_run,
        "changes": [
            {
                "name": change.name,
                "value": change.value,
                "kind": change.registry.noun,
                "label": change.label,
                "spec": change.registry.file,
                "new": change.new,
            }
            for change in result.changes
        ],
    }


def _print_synced(result: Result, options: argparse.Namespace) -> None:
    for enum in result.absent:
        print(f"{options.header} declares no enum {enum}: nothing of it was compared")
    if not result.changes:
        print(f"the spec has every device and every data-type code of {options.header}")
        return
    would = "would be " if options.dry_run else ""
    state = "unreleased" if result.since is None else f"since DLPack {result.since}"
    for change in result.changes:
        done = "added to" if change.new else "completed in"
        place = f"{change.registry.file} as '{change.label}', {state}"
        print(f"{change.name} = {change.value} {would}{done} {place}")
    print("\nTo be decided by a person:")
    for noun, questions in _DECISIONS.items():
        if any(change.registry.noun == noun for change in result.changes):
            print(questions)
    print(_UNRELEASED if result.since is None else _RELEASED)
    print("Then: make generate && make test")
