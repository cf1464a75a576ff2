"""Runs `fletching validate` on released libraries, and compares the results with results.yaml.

    table.py [--write] [PACKAGE...]

Each library of libraries.yaml has its environment in build/libraries. --write stores the results
instead, and writes docs/measured/conformance.md. build/conformance.json has every finding.
Exit codes: 0 as stored, 1 a result has changed, 2 a library could not be installed or called.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ENVIRONMENTS = ROOT / "build" / "libraries"
REPORT = ROOT / "build" / "conformance.json"
RESULTS = HERE / "results.yaml"
PAGE = ROOT / "docs" / "measured" / "conformance.md"
REPOSITORY = "https://github.com/fletching/fletching/blob/main/"
UV = str(Path(sys.executable).with_name("uv"))
INSTALL_SECONDS, TARGET_SECONDS, CASE_SECONDS = 900, 300, 20
STANDINS = {"LD_LIBRARY_PATH": "build/lib/standin"}
HEADER = "# Written by table.py --write; findings.yaml explains the findings.\n"


class TableError(Exception):
    """A library that could not be installed or called."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the results")
    parser.add_argument("package", nargs="*", help="only these libraries")
    options = parser.parse_args()
    try:
        data, kept, judged = map(read, ("libraries.yaml", "results.yaml", "findings.yaml"))
    except yaml.YAMLError as error:  # names the file and the line
        parser.error(str(error))
    chosen = {
        name: library
        for name, library in data["libraries"].items()
        if "version" in library and name in (options.package or data["libraries"])
    }
    for name in set(options.package) - set(chosen):
        parser.error(f"unknown library: expected one with a version in libraries.yaml, got {name}")
    reports, got, is_complete = {}, {}, True
    for name, library in chosen.items():
        try:
            reports[name] = play(name, library, data["day"])
            got[name] = summary(library, reports[name])
        except TableError as error:
            print(f"{name}: {error}", file=sys.stderr)
            is_complete = False
    if REPORT.exists():
        reports = {**json.loads(REPORT.read_text(encoding="utf-8")), **reports}
    REPORT.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    if options.write:
        is_part = options.package or not is_complete
        day = kept["measured"] if is_part else datetime.date.today()
        kept = {"measured": day, "libraries": {**kept["libraries"], **got}}
        RESULTS.write_text(HEADER + as_yaml(kept), encoding="utf-8")
        PAGE.write_text(page_text(), encoding="utf-8")
    changed = [*changes(kept["libraries"], got)]
    if PAGE.read_text(encoding="utf-8") != page_text():
        changed.append(f"{PAGE.relative_to(ROOT)} does not have the results in {RESULTS.name}")
    changed += page.unjudged(read("results.yaml")["libraries"], judged)
    print("\n".join(changed or [f"conformance: {len(got)} libraries: as in {RESULTS.name}"]))
    if changed:
        print("hint: judge each change in findings.yaml, then run table.py --write")
    if not is_complete:
        return 2
    return 1 if changed else 0


def read(name: str) -> dict[str, Any]:
    with (HERE / name).open(encoding="utf-8") as file:
        found: dict[str, Any] = yaml.safe_load(file)
    return found


def as_yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    return text


def page_text() -> str:
    suites = {
        file.stem: yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in (HERE.parent / "conformance").glob("*.yaml")
    }
    data, results, judged = map(read, ("libraries.yaml", "results.yaml", "findings.yaml"))
    return page.page(data, results, judged, suites)


def play(name: str, library: Mapping[str, Any], day: datetime.date) -> dict[str, Any]:
    """Returns the report of `fletching validate` for each producer and consumer, by its title."""
    began = time.monotonic()
    python = install(name, library, day)
    if "build" in library:
        run(["bash", "-c", library["build"]])
    reports = {
        title: validate(python, options, environment_of(library, options))
        for title, options in page.targets(library)
    }
    print(f"{name} {library['version']}: {time.monotonic() - began:.0f} s", flush=True)
    return reports


def environment_of(library: Mapping[str, Any], options: list[str]) -> dict[str, str]:
    """Returns the variables of a target. A consumer of device data needs the stand-ins."""
    is_device = any(option.startswith("device-") for option in options)
    return {**(STANDINS if is_device else {}), **library.get("environment", {})}


def install(name: str, library: Mapping[str, Any], day: datetime.date) -> Path:
    """Returns the interpreter of the library's environment, which it fills if it is not there."""
    package = () if "build" in library else (f"{name}=={library['version']}",)
    wanted = *package, *library.get("with", ())
    folder = ENVIRONMENTS / name
    python, stamp = folder / "bin" / "python", folder / "fletching-stamp"
    contents = f"{day} {' '.join(wanted)}"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == contents:
        return python
    run([UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
    options = ["--quiet", "--exclude-newer", str(day), "--python", str(python)]
    if wanted:
        run([UV, "pip", "install", *options, *wanted])
    stamp.write_text(contents, encoding="utf-8")
    return python


def run(command: list[str]) -> None:
    code, _, errors = call(command, INSTALL_SECONDS, {})
    if code != 0:
        raise TableError(f"{' '.join(command)}: exit code {code}\n{errors}")


def call(command: list[str], seconds: int, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Returns the exit code and the output. Raises TableError after the time limit, when no child
    of the command is left."""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", env={**os.environ, **environment}, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text = f"expected an end within {seconds} s"
            raise TableError(f"{' '.join(command)}: {text}") from None
    return process.returncode, output, errors


def validate(python: Path, options: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "fletching_generator.cli", "validate", *options]
    command += ["--timeout", str(CASE_SECONDS), "--json"]
    if "--python" in options:
        command += ["--interpreter", str(python)]
    with tempfile.TemporaryDirectory(dir=ENVIRONMENTS) as folder:
        code, output, errors = call(command, TARGET_SECONDS, {**environment, "TMPDIR": folder})
    if code not in (0, 1):
        raise TableError(f"{' '.join(command)}: exit code {code}\n{errors}")
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:  # the exit code of an exception is 1
        raise TableError(f"{' '.join(command)}: no report\n{errors}") from None
    return report


def summary(library: Mapping[str, Any], reports: Mapping[str, Any]) -> dict[str, Any]:
    """Merges findings with the same severity and rule. Those of broken structs are apart."""
    cases = Counter(
        case["name"].partition("/")[0] for report in reports.values() for case in report["cases"]
    )
    rows: dict[tuple[str, str, bool], dict[str, Any]] = {}
    options = dict(page.targets(library))
    for title, report in reports.items():
        if report["incomplete"]:
            raise TableError(f"{report['target']}: incomplete: {report['incomplete']}")
        for finding in report["findings"]:
            key = finding["severity"], finding["rule"], page.BROKEN in finding["message"]
            case = finding["case"].partition("/")[2]
            first = {
                "severity": finding["severity"],
                "rule": finding["rule"],
                "link": link(finding["url"]),
                "found": found(finding),
                "again": page.command(
                    [*options[title], "--case", case], environment_of(library, options[title])
                ),
                "cases": 0,
                "targets": [],
            }
            row = rows.setdefault(key, first)
            row["cases"] += 1 + finding["more_cases"]
            if title not in row["targets"]:
                row["targets"].append(title)
    order = sorted(rows.values(), key=lambda row: page.SEVERITIES.index(row["severity"]))
    return {
        "version": library["version"],
        "cases": dict(sorted(cases.items())),
        "waits": {title: waits(report) for title, report in reports.items() if report["waits"]},
        "findings": order,
    }


def waits(report: Mapping[str, Any]) -> str:
    """Returns the devices of each verdict: "waits: cuda, opencl; refuses: vulkan"."""
    devices: dict[str, list[str]] = {}
    for wait in report["waits"]:
        devices.setdefault(wait["verdict"], []).append(wait["device"])
    return "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in devices.items())


def found(finding: Mapping[str, str]) -> str:
    """Returns the message in one line, without addresses."""
    text = f"{finding['path']}: {finding['message']}" if finding["path"] else finding["message"]
    text = text.replace("has crashed: Quit", "has crashed: Aborted")  # a panic of Go has either
    return re.sub(r"0x[0-9a-f]{6,}|\d{12,}", "<address>", " ".join(text.split()))


def link(url: str) -> str:
    """Returns the address relative to docs/measured."""
    path = url.removeprefix(REPOSITORY)
    return f"../{path.removeprefix('docs/')}" if path.startswith("docs/") else f"../../{path}"


def changes(kept: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    for name, now in got.items():
        before = kept.get(name, {"version": None, "cases": None, "findings": []})
        for key in ("version", "cases", "waits"):
            if (expected := before.get(key) or None) != (now[key] or None):
                yield f"{name}: {key}: expected {expected}, got {now[key]}"
        for row in before["findings"]:
            if row not in now["findings"]:
                yield f"{name}: no longer, or not the same: {row}"
        for row in now["findings"]:
            if row not in before["findings"]:
                yield f"{name}: new: {row}"


if __name__ == "__main__":
    sys.exit(main())
