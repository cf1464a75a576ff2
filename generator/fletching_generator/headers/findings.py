"""Findings from comparing a header with the spec."""

from __future__ import annotations

from dataclasses import dataclass

from .facts import Place, Run

ERROR, WARNING, NOTE = "error", "warning", "note"
LAGS = "is missing: the header lags behind the specification"


@dataclass(frozen=True)
class Finding:
    severity: str  # "error": another ABI or a broken promise; "warning"; "note": information
    interface: str  # "c-device-data"
    subject: str  # "ArrowDeviceArray.sync_event"
    text: str  # "at offset 88, the specification has it at 96"
    place: Place | None  # None for a missing item


@dataclass(frozen=True)
class Report:
    """The findings, each with the runs (language and target) in which it occurs."""

    runs: int
    declared: tuple[str, ...]  # the interfaces that the header declares
    absent: tuple[str, ...]  # the other ones; a mistake if all are, or if one was requested by name
    missed: bool  # an interface requested by name is absent
    findings: tuple[tuple[Finding, tuple[Run, ...]], ...]

    @property
    def wrong(self) -> bool:
        return (
            self.missed
            or not self.declared
            or any(finding.severity == ERROR for finding, _ in self.findings)
        )
