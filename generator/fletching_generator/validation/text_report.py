"""The findings as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..terminal import Paint
from .findings import SEVERITIES, Finding, Judgement
from .rule_links import Rules
from .targets import Target

_COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def as_text(judgement: Judgement, target: Target, rules: Rules, notes: bool, paint: Paint) -> str:
    shown = [f for f in judgement.findings if notes or f.severity != "note"]
    blocks = ["\n".join(_block(finding, rules, paint)) for finding in shown]
    return "\n\n".join([*blocks, "\n".join(_summary(judgement, target, notes))]) + "\n"


def _block(finding: Finding, rules: Rules, paint: Paint) -> Iterator[str]:
    party = f" ({finding.party})" if finding.party else ""
    yield f"{paint(finding.severity, _COLORS[finding.severity])}: {finding.rule}{party}"
    place = f"{finding.path}: " if finding.path else ""
    yield f"  {place}{finding.message}"
    yield f"  rule: {rules.text(finding.rule)}"
    more = f", and {finding.more_cases} more" if finding.more_cases else ""
    yield f"  case: {finding.case}{more}"
    if finding.history:
        yield "  calls:"
        yield from (f"    {call}" for call in finding.history)
    yield f"  {rules.link(finding.rule)}"


def _summary(judgement: Judgement, target: Target, notes: bool) -> Iterator[str]:
    hidden = Counter(f.rule for f in judgement.findings if f.severity == "note")
    if hidden and not notes:
        rules = ", ".join(f"{rule} ({count})" for rule, count in hidden.items())
        yield f"notes: {rules}; --notes shows them"
    devices: dict[tuple[str, str], list[str]] = {}
    for wait in judgement.waits:
        devices.setdefault((wait.verdict, wait.about), []).append(wait.device)
    for (verdict, about), names in devices.items():
        yield f"{verdict}: {', '.join(names)} ({about})"
    unsupported = sum(case.verdict in ("not-supported", "absent") for case in judgement.cases)
    left_out = f", {unsupported} not supported" if unsupported else ""
    counts = [f"{_plural(judgement.count(severity), severity)}" for severity in SEVERITIES]
    yield (f"{target.name}: {_plural(len(judgement.cases), 'case')}{left_out}: {', '.join(counts)}")
    if judgement.problem:
        yield f"incomplete: {judgement.problem}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
