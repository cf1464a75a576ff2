"""Reports a comparison of a header with the spec, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..terminal import Paint, plain
from .facts import Place, Run
from .findings import ERROR, LAGS, NOTE, WARNING, Finding, Report

_COLORS = {ERROR: "red", WARNING: "yellow", NOTE: "cyan"}


def as_text(header: Path, report: Report, runs: Sequence[Run], paint: Paint = plain) -> str:
    languages = " and ".join(dict.fromkeys(run.language for run in runs))
    targets = len({run.target for run in runs})
    lines = [f"{header}: read as {languages} on {targets} target{'s' if targets > 1 else ''}"]
    for interface in report.declared:
        found = [entry for entry in report.findings if entry[0].interface == interface]
        lines.append(f"  {interface}: {_verdict([finding for finding, _ in found], paint)}")
        lines.extend(f"    {line}" for line in _findings(header, found, runs, paint))
    missing = "not declared, though asked for by name" if report.missed else "not declared"
    lines.extend(f"  {interface}: {missing}" for interface in report.absent)
    if not report.declared:
        lines.append("nothing was compared: is it the right file, or does it need a -D after --?")
    return "\n".join(lines) + "\n"


def _verdict(findings: list[Finding], paint: Paint) -> str:
    errors = sum(finding.severity == ERROR for finding in findings)
    if errors:
        return paint(f"{errors} error{'s' if errors > 1 else ''}", "red")
    return paint("agrees" if not findings else "agrees, with remarks", "green")


def _findings(
    header: Path,
    found: list[tuple[Finding, tuple[Run, ...]]],
    runs: Sequence[Run],
    paint: Paint,
) -> Iterator[str]:
    for finding, where in found:
        if finding.text != LAGS:
            place = f"{_place(header, finding.place)}: " if finding.place else ""
            on = _where(where, runs)
            severity = paint(f"{finding.severity}:", _COLORS[finding.severity])
            yield f"{severity} {place}{finding.subject} {finding.text}{on}"
    lagging = [finding.subject for finding, _ in found if finding.text == LAGS]
    if lagging:
        note = paint(f"{NOTE}:", _COLORS[NOTE])
        yield f"{note} lags behind the specification by {', '.join(lagging)}"


def _place(header: Path, place: Place) -> str:
    """Returns the place. The report's first line already has the header's folder."""
    return f"{header.name if place.file == str(header) else place.file}:{place.line}"


def _where(where: tuple[Run, ...], runs: Sequence[Run]) -> str:
    """Returns a short description of the runs with a finding; empty if all runs have it."""
    if len(where) == len(runs):
        return ""
    for attribute, word in (("language", "in"), ("pointer_size", "on")):
        values = {getattr(run, attribute) for run in where}
        if where == tuple(run for run in runs if getattr(run, attribute) in values):
            names = sorted(f"{v * 8}-bit targets" if isinstance(v, int) else v for v in values)
            return f" ({word} {' and '.join(names)})"
    names = list(dict.fromkeys(run.target for run in where))
    others = [target for target in dict.fromkeys(run.target for run in runs) if target not in names]
    if 0 < len(others) < len(names):
        return f" (on all targets but {', '.join(others)})"
    return f" (on {', '.join(names)})"


def as_json(header: Path, report: Report, runs: Sequence[Run]) -> dict[str, object]:
    return {
        "file": str(header),
        "runs": [{"language": run.language, "target": run.target} for run in runs],
        "declared": list(report.declared),
        "absent": list(report.absent),
        "findings": [
            {
                "severity": finding.severity,
                "interface": finding.interface,
                "subject": finding.subject,
                "text": finding.text,
                "file": finding.place.file if finding.place else None,
                "line": finding.place.line if finding.place else None,
                "runs": [{"language": run.language, "target": run.target} for run in where],
            }
            for finding, where in report.findings
        ],
        "ok": not report.wrong,
    }
