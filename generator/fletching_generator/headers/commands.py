"""The header commands: `fletching check-header` and `fletching sync`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..errors import CANNOT_RUN, FINE, FOUND, UsageError
from ..spec.load import load_declarations
from .check_header import compare
from .facts import TARGETS, read_header, read_with_macro
from .report import as_json, as_text
from .sync import RefusedError, sync


def run_check_header(root: Path, options: argparse.Namespace) -> int:
    spec = load_declarations(root)
    known = [interface.id for interface in spec.interfaces]
    for name in options.interface:
        if name not in known:
            raise UsageError(f"no interface '{name}'; use one of {', '.join(known)}")
    targets = TARGETS if options.targets == "all" else tuple(options.targets.split(","))
    runs = read_header(options.header, options.languages, targets, options.flags)
    report = compare(
        spec,
        runs,
        options.interface,
        lambda macro: read_with_macro(options.header, runs, macro, options.flags),
    )
    if options.json:
        print(json.dumps(as_json(options.header, report, runs), indent=2))
    else:
        print(as_text(options.header, report, runs), end="")
    if not report.declared:
        return CANNOT_RUN
    return FOUND if report.wrong else FINE


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
    try:
        result = sync(root, options.header, options.flags, options.dry_run)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return FOUND
    for enum in result.absent:
        print(f"{options.header} declares no enum {enum}: nothing of it was compared")
    if not result.changes:
        print(f"the spec has every device and every data-type code of {options.header}")
        return FINE
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
    return FINE
