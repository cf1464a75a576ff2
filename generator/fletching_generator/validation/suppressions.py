"""A file of findings that are known, with the reason of each."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import SpecError
from ..reading.documents import Document
from .findings import Finding, Judgement
from .rule_links import Rules


@dataclass(frozen=True)
class Suppression:
    rule: str
    path: str  # of the findings; * and ? are wildcards
    reason: str
    expires: datetime.date | None
    place: str  # "known.yaml:3"

    def matches(self, finding: Finding) -> bool:
        # A path has brackets, which fnmatch reads as a set of characters.
        pattern = self.path.replace("[", "[[]")
        return finding.rule == self.rule and fnmatchcase(finding.path, pattern)


def read_suppressions(path: Path, root: Path, rules: Rules) -> tuple[Suppression, ...]:
    """Raises SpecError."""
    document = Document(path, str(path))
    document.validate(root / "spec" / "schema" / "suppressions.schema.json")
    entries = document.content["suppressions"]
    mistakes = [
        document.mistake(
            ["suppressions", index, "rule"],
            f"unknown rule '{entry['rule']}'",
            "use the id of a finding",
        )
        for index, entry in enumerate(entries)
        if not rules.is_known(entry["rule"])
    ]
    if mistakes:
        raise SpecError(*mistakes)
    return tuple(
        Suppression(
            rule=entry["rule"],
            path=entry.get("path", "*"),
            reason=entry["reason"],
            expires=_date(entry.get("expires")),
            place=f"{path}:{document.line(['suppressions', index])}",
        )
        for index, entry in enumerate(entries)
    )


def _date(text: str | None) -> datetime.date | None:
    return datetime.date.fromisoformat(text) if text else None


def suppress(
    judgement: Judgement, suppressions: tuple[Suppression, ...], today: datetime.date
) -> Judgement:
    """Removes the suppressed findings, and adds one for each suppression that is unused or has
    expired. An expired one suppresses nothing."""
    live = [s for s in suppressions if s.expires is None or s.expires >= today]
    used: set[Suppression] = set()

    def is_shown(finding: Finding) -> bool:
        matching = [suppression for suppression in live if suppression.matches(finding)]
        used.update(matching)
        return not matching

    findings = [finding for finding in judgement.findings if is_shown(finding)]
    cases = [
        replace(case, findings=tuple(f for f in case.findings if is_shown(f)))
        for case in judgement.cases
    ]
    for suppression in suppressions:
        if suppression not in live:
            text = f"expired on {suppression.expires}: expected a later date, or no suppression"
            findings.append(_stale("check.suppression-expired", suppression, text))
        elif suppression not in used:
            text = "matches no finding: expected one, or no suppression"
            findings.append(_stale("check.suppression-unused", suppression, text))
    return Judgement(cases, findings, judgement.problem)


def _stale(rule: str, suppression: Suppression, text: str) -> Finding:
    message = f"{suppression.place}: {suppression.rule}: {text}"
    return Finding(rule, "warning", "", "", message, "suppressions")
