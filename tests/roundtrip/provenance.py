"""The date, commit and machine of a report."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from libraries import ROOT

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Provenance:
    date: str  # in UTC: SOURCE_DATE_EPOCH, or now
    commit: str  # ends with "-dirty" if files differ from it
    machine: str  # system, architecture and processor


def provenance() -> Provenance:
    return Provenance(_date(), _commit(), _machine())


def _date() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _commit() -> str:
    """The commit, or "unknown" outside of a clone."""
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or UNKNOWN


def _machine() -> str:
    names = [platform.system(), platform.machine(), _processor(Path("/proc/cpuinfo"))]
    return ", ".join(name for name in names if name)


def _processor(path: Path) -> str:
    """The name of the first processor, if the system provides it."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "")
