"""The findings of a comparison of a header with the spec."""

from __future__ import annotations

from dataclasses import dataclass

from .facts import Place, Run

ERROR, WARNING, NOTE = "error", "warning", "note"
LAGS = "is missing: the header lags behind the specification"


@dataclass(frozen=True)
class Finding:
    severity: str  # "error": another ABI or a broken promise; "warning"; "note": worth knowing
    interface: str  # "c-device-data"
    subject: str  # "ArrowDeviceArray.sync_event"
    text: str  # "at offset 88, the specification has it at 96"
    place: Place | None  # None for what is not there


@dataclass(frozen=True)
class Report:
    """The findings, each with the runs (language and target) that show it."""

    runs: int
    declared: tuple[str, ...]  # the interfaces that the header declares
    absent: tuple[str, ...]  # those that it does not; a mistake if it is all, or asked for by name
    missed: bool  # one that was asked for by name is absent
    findings: tuple[tuple[Finding, tuple[Run, ...]], ...]

    @property
    def wrong(self) -> bool:
        return (
            self.missed
            or not self.declared
            or any(finding.severity == ERROR for finding, _ in self.findings)
        )
