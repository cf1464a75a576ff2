"""The command `fletching validate`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..errors import CANNOT_RUN, FINE, FOUND
from .findings import Finding, Judgement, judge
from .rule_links import Rules
from .runner import run_lines
from .targets import LEVELS, ROLES, Target, target_of
from .text_report import as_text

_TIMEOUT = 60


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", nargs="?", metavar="LIBRARY:FUNCTION", help="a plain C function")
    command.add_argument(
        "--as", dest="role", choices=ROLES, metavar="ROLE", help=f"its role: {', '.join(ROLES)}"
    )
    command.add_argument("--subject", metavar="LIBRARY", help="every subject of a shared library")
    command.add_argument(
        "--group", action="append", default=[], help="of the subjects, only this one (repeatable)"
    )
    command.add_argument("--case", help="only this case, or those that begin so: 'stream.*'")
    command.add_argument(
        "--level", choices=LEVELS, default="data", help="what the structs are checked for"
    )
    command.add_argument(
        "--timeout",
        type=int,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"how long a case may be silent (default: {_TIMEOUT})",
    )
    command.add_argument("--notes", action="store_true", help="print notes, too")
    command.set_defaults(run=run_validate)


def run_validate(root: Path, options: argparse.Namespace) -> int:
    target = target_of(options)
    # The suite's peer reports what it waits for before the watchdog ends the case.
    patience = {"FLETCHING_HOSTILE_SECONDS": str(max(1, options.timeout // 2))}
    judgement = judge(run_lines(target.arguments, {**patience, **dict(target.environment)}))
    if judgement.problem and not judgement.cases:
        print(f"fletching: validate: {target.name}: {judgement.problem}", file=sys.stderr)
        return CANNOT_RUN
    rules = Rules(root)
    if options.json:
        print(json.dumps(as_json(judgement, target, rules), indent=2))
    else:
        print(as_text(judgement, target, rules, options.notes, options.paint), end="")
    return FOUND if judgement.count("error") + judgement.count("warning") else FINE


def as_json(judgement: Judgement, target: Target, rules: Rules) -> dict[str, Any]:
    return {
        "ok": not (judgement.count("error") + judgement.count("warning")),
        "target": target.name,
        "cases": [{"name": case.name, "verdict": case.verdict} for case in judgement.cases],
        "findings": [_finding(finding, rules) for finding in judgement.findings],
        "incomplete": judgement.problem or None,
    }


def _finding(finding: Finding, rules: Rules) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "party": finding.party or None,
        "path": finding.path,
        "message": finding.message,
        "case": finding.case,
        "more_cases": finding.more_cases,
        "history": list(finding.history),
        "url": rules.link(finding.rule),
    }
