"""Runs programs that print facts, checks and costs (main.cpp), and records their outcome."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STARTED = time.monotonic()

# Only a hang takes this long. The program itself limits each check (watchdog.hpp).
PROGRAM_SECONDS = "FLETCHING_GPU_PROGRAM_SECONDS"
TOTAL_SECONDS = "FLETCHING_GPU_TOTAL_SECONDS"
DEFAULT_SECONDS = {PROGRAM_SECONDS: 240, TOTAL_SECONDS: 540}

HUNG = 3  # exit code of a program in which a check hung


class CannotRunError(Exception):
    """The message names the missing part and the fix."""


@dataclass(frozen=True)
class Row:
    name: str
    verdict: str  # "ok", "FAILED" or "absent"
    compared: int
    reason: str


# The maximum cost of Fletching, as a multiple of another entry in the same run.
LIMITS = {"the same driver calls, hand-written": 1.5}


@dataclass(frozen=True)
class Cost:
    """The cost of one round of a case; Fletching is the first entry of a case."""

    case: str
    who: str
    nanoseconds: float


@dataclass(frozen=True)
class Build:
    """The folder of the programs, and their environment."""

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
    hung: str = ""  # name of the check or program that hung


def seconds(variable: str) -> float:
    """The value of the variable. Raises CannotRunError if it is not a positive number."""
    text = os.environ.get(variable, "")
    try:
        value = float(text) if text else float(DEFAULT_SECONDS[variable])
    except ValueError:
        value = 0.0
    if value <= 0:
        raise CannotRunError(f"{variable}: expected a positive number of seconds, got '{text}'")
    return value


def limit() -> float:
    """The time limit of the next program; 0 if no time is left."""
    left = seconds(TOTAL_SECONDS) - (time.monotonic() - STARTED)
    return max(0.0, min(seconds(PROGRAM_SECONDS), left))


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> Findings:
    """Runs a program that prints facts and checks (main.cpp), and prints the checks as they finish.

    Raises CannotRunError if the program is missing or reports that there is no device.
    """
    name = next(Path(word).name for word in command if word != sys.executable)
    code, output, errors = run(command, environment, show_check)
    if code == 2:
        raise CannotRunError(errors.strip() or f"{command[0]} exited with 2, and said nothing")
    findings = read_findings(output)
    reported = any(row.verdict == "FAILED" for row in findings.rows)
    if code == HUNG and reported:
        findings.hung = findings.rows[-1].name
    elif (code != 0 and not (code == 1 and reported)) or not (findings.rows or findings.costs):
        findings.rows.append(Row(name, "FAILED", 0, how_it_ended(code, errors)))
        findings.hung = name if code is None else ""
    return findings


def show_check(line: str) -> None:
    match line.rstrip("\n").split("\t"):
        case ["check", name, verdict, compared, reason]:
            show(Row(name, verdict, int(compared), reason))


def show(row: Row) -> None:
    """Prints immediately, so that a later hang does not lose earlier rows."""
    print(f"{row.verdict:6} {row.name}{row.reason and ': '}{row.reason}", flush=True)


def how_it_ended(code: int | None, said: str) -> str:
    """`code`: from `run`. `said`: the output, whose last line names the running check."""
    last = said.strip().splitlines()[-1] if said.strip() else "before it said anything"
    if code is None:
        return f"hangs: was ended when its time was over, at: {last}"
    return f"ended with {code}, at: {last}"


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    on_line: Callable[[str], None] = lambda line: None,
) -> tuple[int | None, str, str]:
    """Returns the exit code, or None after a hang, stdout and stderr.

    Calls `on_line` with each line of stdout as it arrives.
    """
    allowed = limit()
    if allowed == 0:
        return None, "", f"not begun: the {seconds(TOTAL_SECONDS):g} s of {TOTAL_SECONDS} are over"
    try:
        with (
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process,
        ):
            over = threading.Event()

            def end() -> None:
                over.set()
                os.killpg(process.pid, signal.SIGKILL)

            killer = threading.Timer(allowed, end)
            killer.start()
            try:
                lines = []
                for line in process.stdout or ():
                    lines.append(line)
                    on_line(line)
                code = process.wait()
            finally:
                killer.cancel()
            errors.seek(0)
            return None if over.is_set() else code, "".join(lines), errors.read()
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
