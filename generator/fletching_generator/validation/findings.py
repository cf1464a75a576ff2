"""Findings and cases from the lines of fletching-validate."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Line = Mapping[str, Any]  # one line of fletching-validate (tests/conformance/child.hpp)

SEVERITIES = ("error", "warning", "note")
_KEPT_CALLS = 16
_BROKEN = ", given a broken struct"
_WAIT = "wait."  # the cases of tests/conformance/waits.hpp

# Findings without a published rule, with their meaning.
CHECKS = {
    "check.crash": "The process of the library ended in this case, by a signal or by exit.",
    "check.hang": "The case did not end within --timeout seconds.",
    "check.leak": "Memory grows with each call, although every struct was released.",
    "check.account": (
        "The function did not release a struct that it got, released it twice, or called it "
        "against the rules."
    ),
    "check.call-fails": "A call failed that this check needs, so the rest was not checked.",
    "check.unexpected": "The library behaved in a way that its users do not expect.",
    "check.refuses-valid": (
        "The function refuses a valid struct. A function that does not support its type returns "
        "ENOTSUP."
    ),
    "check.accepts-invalid": (
        "The function returned 0 for a broken struct. It may not have looked at what is broken."
    ),
    "check.hides-error": "A call of the function failed, and its result is 0.",
    "check.answer": "The subject's answer, data or ownership differs from what the case demands.",
    "check.exception": "A method of the object raised an exception that the protocol excludes.",
    "check.suppression-unused": "A suppression matches no finding.",
    "check.suppression-expired": "A suppression has expired.",
}


@dataclass(frozen=True)
class Finding:
    """A broken rule, or something that no rule describes."""

    rule: str  # "stream.errno-codes", or a key of CHECKS
    severity: str  # one of SEVERITIES
    party: str  # "producer", "consumer", "both", or "" if it is not known
    path: str  # "get_next[2].array", or ""
    message: str  # "expected X, got Y"
    case: str  # the first case with it: "stream-producer/read"
    history: tuple[str, ...] = ()  # the last calls with their results
    more_cases: int = 0

    @property
    def identity(self) -> tuple[str, ...]:
        """The same for each call of a sequence: get_next[0] and get_next[1]."""
        place = re.sub(r"^(\w+)\[\d+\]", r"\1[]", self.path)
        return self.rule, self.severity, self.party, place, self.message


@dataclass(frozen=True)
class Wait:
    """A consumer's use of device data before and after sync_event completed."""

    device: str  # "cuda_host"
    verdict: str  # "waits", "reads early", ... (tests/conformance/waits.hpp), or how it ended
    about: str  # the device's name, or why it is absent


@dataclass(frozen=True)
class Case:
    name: str  # "stream-producer/read"
    verdict: str  # "right", "wrong", "not-supported", "absent"
    findings: tuple[Finding, ...] = ()
    wait: Wait | None = None


@dataclass
class Judgement:
    """The cases of a run in order, and its findings, the same ones merged."""

    cases: list[Case] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    problem: str = ""  # why the run could not start or end

    @property
    def waits(self) -> list[Wait]:
        return [case.wait for case in self.cases if case.wait]

    def count(self, severity: str) -> int:
        return sum(finding.severity == severity for finding in self.findings)


def judge(lines: Iterable[Line]) -> Judgement:
    judgement, judge_of_case = Judgement(), _Case("")
    merged: dict[tuple[str, ...], Finding] = {}
    for line in lines:
        if "begin" in line:
            judge_of_case = _Case(line["begin"])
        elif "call" in line:
            judge_of_case.note_call(line["call"])
        elif "finding" in line:
            judge_of_case.add(line["finding"])
        elif "error" in line:
            judgement.problem = line["error"]
        elif "verdict" in line:
            if "ended" in line:
                judge_of_case.end(line)
            case = judge_of_case.result(line)
            judgement.cases.append(case)
            _merge(merged, case.findings)
    judgement.findings = sorted(merged.values(), key=lambda each: SEVERITIES.index(each.severity))
    return judgement


def _merge(merged: dict[tuple[str, ...], Finding], findings: Iterable[Finding]) -> None:
    """Adds the findings of a case. Counts the case for each known finding."""
    first: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        first.setdefault(finding.identity, finding)
    for identity, finding in first.items():
        known = merged.get(identity)
        merged[identity] = replace(known, more_cases=known.more_cases + 1) if known else finding


class _Case:
    """A case in play."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: deque[str] = deque(maxlen=_KEPT_CALLS)
        self.findings: list[Finding] = []
        self._is_broken = False  # the struct that the library got

    def note_call(self, text: str) -> None:
        """Joins a call and its result if no other call is between them."""
        if text.startswith("given "):
            self._is_broken = text.endswith("(broken)")
        if self.calls and text.startswith(f"{self.calls[-1]} returned"):
            self.calls.pop()
        self.calls.append(text)

    def add(self, finding: Mapping[str, str]) -> None:
        layer = tuple(finding["history"].splitlines())
        is_panic = finding["rule"] == "check.exception" and finding["party"] == "consumer"
        self.findings.append(
            Finding(
                rule=finding["rule"] or "check.answer",
                severity=finding["severity"],
                party=finding["party"],
                path=finding["path"],
                message=finding["message"] + (_BROKEN if is_panic and self._is_broken else ""),
                case=self.name,
                history=max(tuple(self.calls), layer, key=len),
            )
        )

    def end(self, line: Line) -> None:
        """Adds the finding for a crash or a hang. A library that crashes on a broken struct breaks
        no rule, so that is a warning."""
        last = f"; last call: {self.calls[-1]}" if self.calls else ""
        rule = "check.hang" if line["ended"] == "hang" else "check.crash"
        severity = "warning" if self._is_broken else "error"
        text = line["message"] + (_BROKEN if self._is_broken else "") + last
        party = next((p for p in ("producer", "consumer") if line["group"].endswith(p)), "")
        self.findings.append(Finding(rule, severity, party, "", text, self.name, tuple(self.calls)))

    def result(self, line: Line) -> Case:
        name, wait = f"{line['group']}/{line['name']}", None
        if line["name"].startswith(_WAIT):
            answer = line["answer"] or f"{line.get('ended')}: {line['message']}"
            verdict, _, about = answer.partition(": ")
            wait = Wait(line["name"].removeprefix(_WAIT), verdict, about)
        return Case(name, line["verdict"], tuple(self.findings), wait)
