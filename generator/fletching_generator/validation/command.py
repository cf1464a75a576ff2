"""The command `fletching validate`."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import CANNOT_RUN, FINE, FOUND
from ..files import replace_file
from ..spec.load import load_declarations
from .explain import explain
from .findings import Finding, Judgement, Line, judge
from .junit import as_junit
from .record import read_record, write_record
from .rule_links import Rules
from .runner import run_lines
from .sarif import as_sarif
from .suppressions import read_suppressions, suppress
from .targets import LEVELS, ROLES, Target, refuse_unused, target_of
from .text_report import as_text

_TIMEOUT = 60
# In the epilog, because argparse breaks lines of an option's help at hyphens.
ROLES_HELP = "roles:\n" + textwrap.fill(
    ", ".join(ROLES), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
)


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "target",
        nargs="?",
        metavar="LIBRARY:FUNCTION",
        help="shared library and the C function to call",
    )
    command.add_argument(
        "--as",
        dest="role",
        choices=ROLES,
        metavar="ROLE",
        help="role of the function (see below); required with LIBRARY:FUNCTION",
    )
    command.add_argument(
        "--subject",
        metavar="LIBRARY",
        help="shared library with a table of functions, for the conformance suite",
    )
    command.add_argument(
        "--python", metavar="MODULE:EXPRESSION", help="Python object that exports data"
    )
    command.add_argument(
        "--consumes",
        action="store_true",
        help="with --python: the expression is a function that takes such an object, in "
        "the role stream-consumer unless --as names another",
    )
    command.add_argument(
        "--interpreter",
        metavar="PYTHON",
        help="with --python: Python that has the module (default: the one that runs this command)",
    )
    command.add_argument(
        "--group", action="append", default=[], help="with --subject: only this group (repeatable)"
    )
    command.add_argument(
        "--case", help="only this case, such as read, or all with a prefix, such as 'wait.*'"
    )
    command.add_argument(
        "--skip",
        action="append",
        default=[],
        metavar="CASE",
        help="do not play this case (repeatable)",
    )
    command.add_argument(
        "--level",
        choices=LEVELS,
        help="check only the calls, also the structs, or also the buffers (default: data); "
        "not with --subject",
    )
    command.add_argument(
        "--timeout",
        type=int,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"how long a case may take without progress (default: {_TIMEOUT})",
    )
    command.add_argument(
        "--suppress", type=Path, metavar="FILE", help="do not report the findings listed in FILE"
    )
    command.add_argument("--sarif", type=Path, metavar="FILE", help="write the findings as SARIF")
    command.add_argument("--junit", type=Path, metavar="FILE", help="write the cases as JUnit XML")
    command.add_argument(
        "--record", type=Path, metavar="FILE", help="write every call and its result as JSON"
    )
    command.add_argument(
        "--replay",
        type=Path,
        metavar="FILE",
        help="check a recorded run again, without the library",
    )
    command.add_argument("--explain", metavar="RULE", help="print a rule, its source and examples")
    command.add_argument("--notes", action="store_true", help="also print the notes")
    command.set_defaults(run=run_validate)


def run_validate(root: Path, options: argparse.Namespace) -> int:
    rules = Rules(root)
    if options.explain:
        print(explain(options.explain, rules), end="")
        return FINE
    suppressions = read_suppressions(options.suppress, root, rules) if options.suppress else ()
    target, lines = _play(options)
    judgement = judge(lines)
    if not judgement.cases:
        problem = judgement.problem or (
            "no case was played: expected another --case or --group; hint: --json lists the cases "
            "of a run without them"
        )
        print(f"fletching: validate: {target.name}: {problem}", file=sys.stderr)
        return CANNOT_RUN
    judgement = suppress(judgement, suppressions, datetime.date.today())
    _write_reports(judgement, target, rules, options)
    if options.json:
        print(json.dumps(as_json(judgement, target, rules), indent=2))
    else:
        print(as_text(judgement, target, rules, options.notes, options.paint), end="")
    return FOUND if judgement.count("error") + judgement.count("warning") else FINE


def _play(options: argparse.Namespace) -> tuple[Target, Iterable[Line]]:
    """Returns the target and the lines of its run, or those of a recorded run."""
    refuse_unused(options)
    if options.replay:
        return read_record(options.replay)
    target = target_of(options)
    # The hostile peer waits more than once in a case. It must report a missing call before the
    # watchdog ends the case.
    patience = {"FLETCHING_HOSTILE_SECONDS": str(max(1, options.timeout // 5))}
    lines = run_lines(target.arguments, {**patience, **dict(target.environment)})
    if options.record:
        recorded = list(lines)
        write_record(options.record, target, recorded)
        return target, recorded
    return target, lines


def _write_reports(
    judgement: Judgement, target: Target, rules: Rules, options: argparse.Namespace
) -> None:
    if options.sarif:
        version = load_declarations(rules.root).project.version
        report = as_sarif(judgement, target, rules, version)
        replace_file(options.sarif, json.dumps(report, indent=2) + "\n")
    if options.junit:
        replace_file(options.junit, as_junit(judgement, target))


def as_json(judgement: Judgement, target: Target, rules: Rules) -> dict[str, Any]:
    return {
        "ok": not (judgement.count("error") + judgement.count("warning")),
        "target": target.name,
        "cases": [{"name": case.name, "verdict": case.verdict} for case in judgement.cases],
        "waits": [dataclasses.asdict(wait) for wait in judgement.waits],
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
