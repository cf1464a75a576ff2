"""The text of docs/measured/conformance.md."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

SEVERITIES = ("error", "warning", "note")
BROKEN = "given a broken struct"
SUITES = "conformance-peers.md"
REPORTS = "../reports"
INTRODUCTION = """# Released libraries and the rules

Printed by `make conformance` on {measured}: `fletching validate` on released libraries.
`make test-all` compares this page with a new run. [Check your library](../validate.md) describes
the calls, and how to make them on your code.

**A finding is no verdict on a library.** A broken struct is not valid input, and a missing
protocol is no finding.

- error: a library breaks a published rule, or crashes on valid data. Each has a
  [report](../reports/README.md) with a program that runs without Fletching.
- warning: a "should" of a text, a crash or panic, or a call that no text settles. No text asks a
  library to survive a broken struct.
- note: a library refuses a valid struct, or accepts a broken one. It may not support a type, or
  may skip a check for speed.

## Libraries

`make conformance` installs each library into a separate environment, or builds an adapter that
calls it ([peers](../../tests/peers/README.md)). The number after a role counts its cases. Consumers
of tables refuse most streams of the suite, which have no columns: these cases test ownership and
errors, not data. Of a tensor that a library exports in a capsule of before DLPack 1.0, as those of
jax, mlx and warp-lang, two cases test only the capsule. The [suite](conformance-peers.md) plays
more cases through subjects in C, Rust and Python.
"""
FINDINGS = """
## Findings

One row for each library, severity and rule, with the first case. The command of the row shows it
again, in an environment with the library, or after `make conformance` with
`--interpreter build/libraries/LIBRARY/bin/python`.
"""
WAITS = """
## Consumers of device data

[What a consumer does](../validate.md#does-a-consumer-wait) with data whose event is pending. CUDA
and ROCm are stand-ins, OpenCL is PoCL, and Vulkan is lavapipe.
"""


def targets(library: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yields each title with the options of `fletching validate`."""
    for title, expression in library.get("producers", {}).items():
        yield title, ["--python", expression]
    for title, text in library.get("consumers", {}).items():
        role, _, function = text.partition(" ")
        skipped = (word for case in library.get("skip", {}) for word in ("--skip", case))
        yield title, ["--python", function, "--consumes", "--as", role, *skipped]
    for title, text in library.get("functions", {}).items():
        role, function, *more = text.split()
        yield title, [function, "--as", role, *more]


def command(options: list[str], environment: Mapping[str, str]) -> str:
    """Returns the command as a user types it: in double quotes if that needs no escapes."""
    words = (
        f'"{word}"' if "'" in word and not set(word) & set('"$`!\\') else shlex.quote(word)
        for word in options
    )
    variables = (f"{name}={value}" for name, value in environment.items())
    return " ".join([*variables, "fletching validate", *words])


def key_of(row: Mapping[str, Any]) -> str:
    """Returns the key of the row's judgement in findings.yaml."""
    place = f", {BROKEN}" if BROKEN in row["found"] else ""
    return f"{row['severity']} {row['rule']}{place}"


def unjudged(results: Mapping[str, Any], judged: Mapping[str, Any]) -> list[str]:
    """Returns the missing entries and reports, and the entries without a finding."""
    found = {
        (name, key_of(row))
        for name, result in results.items()
        for row in result["findings"]
        if row["severity"] != "note"
    }
    entries = {(name, rule) for name, rules in judged.items() for rule in rules}
    missing = [f"expected an entry {name}: {rule}" for name, rule in sorted(found - entries)]
    stray = [f"no such finding: {name}: {rule}" for name, rule in sorted(entries - found)]
    silent = [
        f"expected a report of {name}: {rule}"
        for name, rule in sorted(found & entries)
        if rule.startswith("error") and "report" not in judged[name][rule]
    ]
    return [f"findings.yaml: {text}" for text in missing + silent + stray]


def page(
    data: Mapping[str, Any],
    results: Mapping[str, Any],
    judged: Mapping[str, Any],
    suites: Mapping[str, Any],
) -> str:
    lines = [INTRODUCTION.format(measured=results["measured"])]
    lines += _table("library", "version", "released", "exercised", *SEVERITIES, "suite")
    for name, library in data["libraries"].items():
        lines.append(_library(name, library, results["libraries"].get(name), suites))
    verdicts = [
        _row(name, title, verdict)
        for name in data["libraries"]
        for title, verdict in results["libraries"].get(name, {}).get("waits", {}).items()
    ]
    if verdicts:
        lines += [WAITS, *_table("library", "consumer", "verdict"), *verdicts]
    lines += [FINDINGS, *_table("library", "severity", "rule", "finding", "again")]
    for name in data["libraries"]:
        for row in results["libraries"].get(name, {}).get("findings", ()):
            lines.append(_finding(name, row, judged.get(name, {}).get(key_of(row), {})))
    return "\n".join([*lines, *_objects(data), *_absent(data)]) + "\n"


def _table(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _library(
    name: str,
    library: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    suites: Mapping[str, Any],
) -> str:
    suite = suites.get(library.get("suite", ""))
    counts: Counter[str] = Counter()
    cases = ""
    if result:
        counts.update(row["severity"] for row in result["findings"])
        cases = ", ".join(f"{group} {count}" for group, count in result["cases"].items())
    version = result["version"] if result else suite and suite["version"]
    numbers = [counts[severity] if result else "" for severity in SEVERITIES]
    played = ""
    if suite:
        right = sum(of["right"] for of in suite["groups"].values())
        place = f"{SUITES}#{library['suite']}-{suite['version'].replace('.', '')}"
        played = f"[{suite['version']}: {right} right, {len(suite['wrong'])} wrong]({place})"
    return _row(name, version, library.get("released", ""), cases, *numbers, played)


def _finding(name: str, row: Mapping[str, Any], judged: Mapping[str, Any]) -> str:
    others = f" ({row['cases']} cases)" if row["cases"] > 1 else ""
    # Not bold "__dlpack__", no element <address>.
    found = re.sub(r"_(?=_)|(?<=_)_|[*<`]", r"\\\g<0>", row["found"])
    text = f"{', '.join(row['targets'])}: {found}{others}"
    if judged:
        text += f". **Judgement:** {judged['judgement']}"
        if report := judged.get("report"):
            text += f" [Report]({REPORTS}/{report})"
    return _row(name, row["severity"], f"[{row['rule']}]({row['link']})", text, f"`{row['again']}`")


def _objects(data: Mapping[str, Any]) -> Iterator[str]:
    yield "\n## Objects and functions\n"
    yield from _table("library", "title", "command")
    for name, library in data["libraries"].items():
        for title, options in targets(library):
            yield _row(name, title, f"`{command(options, library.get('environment', {}))}`")


def _absent(data: Mapping[str, Any]) -> Iterator[str]:
    yield "\n## Not exercised\n"
    yield from _table("library", "why")
    for name, library in data["libraries"].items():
        for case, why in library.get("skip", {}).items():
            yield _row(f"{name}, consumers, case {case}", why)
    for name, why in data["absent"].items():
        yield _row(name, why)
