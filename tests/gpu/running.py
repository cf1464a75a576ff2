"""Programs that print facts, checks and costs (main.cpp), and what became of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A check that never ends is a failure, and nothing else depends on this time.
GIVE_UP_SECONDS = 480


class CannotRunError(Exception):
    """The message says what is missing and how to mend it."""


@dataclass(frozen=True)
class Row:
    name: str
    verdict: str  # "ok", "FAILED" or "absent"
    compared: int
    reason: str


# What ours may cost at most, as a multiple of somebody else's time in the same run.
LIMITS = {"the same driver calls by hand": 1.2}


@dataclass(frozen=True)
class Cost:
    """What one round of a case costs; the first of a case is ours."""

    case: str
    who: str
    nanoseconds: float


@dataclass(frozen=True)
class Build:
    """Where the programs are, and what they run with."""

    preset: str
    folder: Path
    libraries: Path
    environment: Mapping[str, str]

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name


@dataclass
class Findings:
    facts: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> Findings:
    """Runs a program that prints facts and checks (main.cpp).

    Raises CannotRunError when it says that there is no device, or is not there itself.
    """
    name = next(Path(word).name for word in command if word != sys.executable)
    code, output, errors = run(command, environment)
    if code == 2:
        raise CannotRunError(errors.strip() or f"{command[0]} exited with 2, and said nothing")
    findings = read_findings(output)
    told = any(row.verdict == "FAILED" for row in findings.rows)
    if (code != 0 and not (code == 1 and told)) or not (findings.rows or findings.costs):
        findings.rows.append(Row(name, "FAILED", 0, how_it_ended(code, errors)))
    return findings


def how_it_ended(code: int | None, said: str) -> str:
    """`code`: of `run`. `said`: what the program wrote, whose last line says where it was."""
    last = said.strip().splitlines()[-1] if said.strip() else "before it said anything"
    if code is None:
        return f"gave up after {GIVE_UP_SECONDS} s: {last}"
    return f"ended with {code}, at: {last}"


def run(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int | None, str, str]:
    """The exit code, None for a program that did not end; stdout; stderr."""
    try:
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            try:
                output, errors = process.communicate(timeout=GIVE_UP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
                return None, output, errors
            return process.returncode, output, errors
    except OSError as error:
        raise CannotRunError(f"{command[0]} does not start: {error}") from None


def read_findings(output: str) -> Findings:
    findings = Findings()
    for line in output.splitlines():
        match line.split("\t"):
            case ["fact", name, text]:
                findings.facts[name] = text
            case ["check", name, verdict, compared, reason]:
                findings.rows.append(Row(name, verdict, int(compared), reason))
            case ["bench", case, who, nanoseconds]:
                findings.costs.append(Cost(case, who, float(nanoseconds)))
            case _:
                findings.rows.append(Row("output", "FAILED", 0, f"cannot read: {line[:200]}"))
    return findings
