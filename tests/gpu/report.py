"""The findings as one page of Markdown, with the versions that produced them."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from running import LIMITS, ROOT, Cost, Findings, Row


def versions(programs: Path | None) -> dict[str, str]:
    """`programs`: the folder from tests/gpu/build-programs, which contains its commit."""
    now = datetime.datetime.now(datetime.timezone.utc)  # 3.10 has no UTC
    return {
        "date": now.strftime("%Y-%m-%d"),
        "commit": _commit(programs),
        "compiler": _first_line(["c++", "--version"]),
        "nvcc": _nvcc_version(),
        "CMake": _first_line(["cmake", "--version"]),
        "interpreter": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _commit(programs: Path | None) -> str:
    """The commit of the tree. A copy on another machine may not be a repository."""
    said = _output(["git", "describe", "--always", "--dirty"])
    copied = programs / "commit" if programs is not None else None
    if not said and copied is not None and copied.exists():
        return copied.read_text(encoding="utf-8").strip()
    return said or "unknown"


def _first_line(command: Sequence[str]) -> str:
    return (_output(command).splitlines() or ["unknown"])[0]


def _output(command: Sequence[str]) -> str:
    try:
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""


def _nvcc_version() -> str:
    """The version of the nvcc that CMake found."""
    for preset in ("gpu", "cmake"):
        cache = ROOT / "build" / preset / "CMakeCache.txt"
        if not cache.exists():
            continue
        found = re.search(r"(?m)^FLETCHING_NVCC:\w+=(.*)$", cache.read_text(encoding="utf-8"))
        if found and not found[1].endswith("NOTFOUND"):
            version = re.search(r"V[\d.]+", _output([found[1], "--version"]))
            return version[0] if version else "unknown"
    return "absent"


def page(findings: Findings) -> list[str]:
    """The costs or the checks as Markdown, then the facts."""
    lines = cost_table(findings.costs) if findings.costs else []
    lines += table(findings) if findings.rows else []
    return [*lines, "", *(f"- {name}: {text}" for name, text in findings.facts.items())]


def ratio(cost: Cost, costs: Sequence[Cost]) -> float:
    """The cost of Fletching, the first entry of a case, as a multiple of this one."""
    return next(c for c in costs if c.case == cost.case).nanoseconds / cost.nanoseconds


def medians(runs: Sequence[Sequence[Cost]]) -> list[Cost]:
    """The median of several runs for each cost."""
    return [
        Cost(costs[0].case, costs[0].who, median(cost.nanoseconds for cost in costs))
        for costs in zip(*runs, strict=True)
    ]


def limit_rows(findings: Findings) -> list[Row]:
    """Checks Fletching's costs against the limits. Times of a stand-in do not count."""
    rows = []
    for cost in findings.costs:
        limit = LIMITS.get(cost.who)
        if limit is None:
            continue
        name = f"{cost.case}, at most {limit:g} x {cost.who}"
        if findings.facts.get("status") != "real":
            rows.append(Row(name, "absent", 0, "the times of a stand-in say nothing"))
            continue
        found = ratio(cost, findings.costs)
        rows.append(Row(name, "ok" if found <= limit else "FAILED", 1, f"{found:.2f} x"))
    return rows


def cost_table(costs: Sequence[Cost]) -> list[str]:
    """The costs, with the ratio of Fletching, the first entry of a case, to each."""
    lines = [
        "",
        "| case | who | nanoseconds | per second | ours / this |",
        "|---|---|---|---|---|",
    ]
    return lines + [
        f"| {cost.case} | {cost.who} | {cost.nanoseconds:,.1f} | {1e9 / cost.nanoseconds:,.0f} "
        f"| {ratio(cost, costs):.2f} |"
        for cost in costs
    ]


def table(findings: Findings) -> list[str]:
    """The checks as Markdown, with a verdict."""
    lines = ["", "| check | verdict | compared | reason |", "|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.verdict} | {row.compared:,} | {_cell(row.reason)} |"
        for row in findings.rows
    ]
    count = {v: sum(row.verdict == v for row in findings.rows) for v in ("ok", "absent", "FAILED")}
    status = findings.facts.get("status", "unknown")
    lines += [
        "",
        f"On {'a real device' if status == 'real' else f'the {status}, no device'}: "
        f"{count['ok']} passed, {count['absent']} absent, {count['FAILED']} failed",
    ]
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_docs(findings: Findings) -> None:
    if findings.facts.get("status") != "real":
        print("test-gpu: nothing written: not a device", file=sys.stderr)
        return
    model = re.sub(r"[^a-z0-9]+", "-", findings.facts["device"].lower()).strip("-")
    kind = "bench-gpu" if findings.costs else "gpu"
    path = ROOT / "docs" / "measured" / f"{kind}-{model}.md"
    command = "make bench-gpu" if findings.costs else "make test-gpu"
    intro = (
        f"What `{command}` found on this device ([what that is](../../tests/gpu/README.md)). "
        f"`{command} GPU=--write-docs` wrote this file."
    )
    title = f"# {'Benchmarks: GPU' if findings.costs else 'GPU'}: {findings.facts['device']}"
    path.write_text("\n".join([title, "", intro, *page(findings), ""]), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
