"""Writes docs/measured/benchmarks.md from the results of `make bench`.

page.py build/bench.json     writes the page and its plots again, without measuring
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import plots
from rows import ROOT, Cell, Peer

FOLDER = ROOT / "docs" / "measured"
PAGE = FOLDER / "benchmarks.md"
UNITS = {"nanoseconds": "ns", "compile": "million instructions"}

HEAD = """\
# Benchmarks

What Fletching costs, compared with hand-written code and with other Arrow libraries, and
[where it costs more](#where-fletching-costs-more). One run of `make bench` measured everything on
one machine ({cpu}, {machine}) on {date} and wrote this page. It took {minutes} minutes with the
build. The load of the machine was {load}: above the number of cores, times between threads say
little, and ranges are wide.

## How to read the tables

- **Cost** is the cost of one round of the case. Instructions are counted, so that they do not
  depend on the load of the machine. Times are CPU time, except those of one stream between two
  threads: compare them only within this run.
- **Fletching / this** is Fletching's cost divided by that of the line. Below 1, Fletching costs
  less. A time has the median of the runs, and in parentheses the minimum and maximum.
- **Limit** is the maximum of that ratio, or of Fletching's own cost. A run over a limit fails.
- **Allocations** are calls of the C allocator, **locks** calls of `pthread_mutex_lock`, in one
  round.

"""
RESULT = """\
## Result

The ratios of each language. Below 1, Fletching costs less. Curves are left out, and so are times
between two threads, here and in the plots: on a busy machine they vary too much. Code without the
interface, such as a queue of the language, does another job: it shows the least that a case can
cost, and is not plotted.

"""
PEERS = """\
## Other programs

The cases are the same, but the libraries do more, and hand-written code does less:

"""
LOST = """\
## Where Fletching costs more

Every comparison of this page in which Fletching costs more:

"""
GOALS = """\
## Goals

The limits guard what is reached. The goals say what is not yet good enough, and profiles of
callgrind and perf what it is spent on:

"""
METHOD = """\
## Method

Fletching and the hand-written programs are compiled with -O2. Each program is one process with the
same loop and the same peer, which the compiler cannot see into. Instructions and allocations come
from valgrind's callgrind: the difference of two runs with different numbers of rounds, divided by
the rounds, so that starting the program does not count. A compiler's instructions come from
cachegrind. Counts come first, a row on each core. Times come then, one program at a time, from up
to {turns} turns over all rows of all languages; in a turn the programs of a row run one after the
other. A ratio is taken within a turn. The rows on the CUDA stand-in count the calling thread; the
stand-in's own instructions are part of both values. Java runs one JMH fork in a turn. The bytes of
Java are those of its heap; the bytes of the others come from malloc.

Measured with {versions}.

## Run it yourself

```sh
make bench                # everything: the results in build/bench.json, this page, its plots
make bench-cpp            # one language, with its limits
make bench-cpp BENCH='--case leaf --only instructions'
```

`.venv/bin/python tests/benchmarks/page.py build/bench.json` writes this page again. The
[GPU benchmark](bench-gpu-nvidia-h200.md) compares a handoff with an event with hand-written driver
calls on a GPU.
"""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    write(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    return 0


def write(report: Mapping[str, Any]) -> None:
    PAGE.write_text(text(report), encoding="utf-8")
    plots.write(cells_in(report), _kinds(report), FOLDER)


def cells_in(report: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(**{**each, "ratio": tuple(each["ratio"]) if each["ratio"] else None})
        for each in report["cells"]
    ]


def _kinds(report: Mapping[str, Any]) -> dict[str, str]:
    return {peer["name"]: peer["kind"] for peer in report["peers"]}


def text(report: Mapping[str, Any]) -> str:
    cells, peers = cells_in(report), [Peer(**each) for each in report["peers"]]
    parts = [HEAD.format_map(report), *_summary(cells, _kinds(report))]
    for topic in dict.fromkeys(cell.topic for cell in cells):
        parts += _topic(topic, [cell for cell in cells if cell.topic == topic])
    parts += [PEERS, *_lines(_peers(peers)), "\n", LOST, *_lines(_lost(cells)), "\n"]
    parts += [GOALS, *_lines(_goals(cells)), "\n"]
    versions = ", ".join(f"{title} ({version})" for title, version in report["versions"].items())
    parts.append(METHOD.format(versions=versions, turns=report["turns"]))
    return "".join(parts)


def _summary(cells: Iterable[Cell], kinds: Mapping[str, str]) -> Iterator[str]:
    yield RESULT
    ratios: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        if cell.ratio and cell.in_summary:
            ratios.setdefault((cell.language, kinds[cell.who]), []).append(cell.ratio[1])
    rows = [["language", "compared with", "comparisons", "lowest", "median", "highest"]]
    for (language, kind), found in ratios.items():
        figures = (min(found), statistics.median(found), max(found))
        rows.append([language, kind, str(len(found)), *(f"{each:.2f}" for each in figures)])
    yield from _lines(rows)
    yield "\n"
    yield from plots.images("Result")


def _topic(topic: str, cells: Sequence[Cell]) -> Iterator[str]:
    yield f"## {topic}\n\n"
    single = [cell for cell in cells if cell.size is None]
    if single:
        yield from _lines(_rows(single))
        yield "\n"
    for language, case, measure in dict.fromkeys(
        (cell.language, cell.case, cell.measure) for cell in cells if cell.size is not None
    ):
        yield f"{language}, {case}, {measure}; in parentheses Fletching / this:\n\n"
        key = (language, case, measure)
        curve = [each for each in cells if (each.language, each.case, each.measure) == key]
        yield from _lines(_curve([each for each in curve if each.size is not None]))
        yield "\n"
    yield from plots.images(topic)


def table(cells: Iterable[Cell]) -> list[str]:
    """The lines of a table for a terminal."""
    rows = _rows(cells)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        " | ".join(field.ljust(width) for field, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def cost(cell: Cell) -> str:
    if cell.measure == "compile":
        return f"{cell.value / 1e6:,.0f}"
    return f"{cell.value:,.2f}" if cell.measure == "locks" else f"{cell.value:,.0f}"


def _case(cell: Cell) -> str:
    return cell.case if cell.size is None else f"{cell.case}: {cell.size:,}"


def _rows(cells: Iterable[Cell]) -> list[list[str]]:
    rows = [
        [
            *("language", "case", "who", "cost", "unit", "allocations", "locks"),
            *("Fletching / this", "limit"),
        ]
    ]
    for cell in cells:
        rows.append(
            [
                cell.language,
                _case(cell),
                cell.who,
                cost(cell),
                UNITS.get(cell.measure, cell.measure),
                "" if cell.allocations is None else f"{round(cell.allocations, 2) + 0:,.6g}",
                "" if cell.locks is None else f"{cell.locks:g}",
                _ratio(cell),
                "" if cell.limit is None else f"{cell.limit:,.10g}" + ("" if cell.ok else " OVER"),
            ]
        )
    return rows


def _ratio(cell: Cell) -> str:
    if cell.ratio is None:
        return ""
    low, middle, high = (f"{each:.2f}" for each in cell.ratio)
    return middle if low == high else f"{middle} ({low} to {high})"


def _curve(cells: Sequence[Cell]) -> list[list[str]]:
    """A line for each size, and a column for each program."""
    found = {(cell.size, cell.who): cell for cell in cells}
    names = list(dict.fromkeys(cell.who for cell in cells))
    rows = [["size", *names]]
    for size in dict.fromkeys(cell.size for cell in cells):
        of_size = [found.get((size, who)) for who in names]
        rows.append(
            [f"{size:,}"]
            + [
                ""
                if cell is None
                else cost(cell) + (f" ({cell.ratio[1]:.2f})" if cell.ratio else "")
                for cell in of_size
            ]
        )
    return rows


def _peers(peers: Sequence[Peer]) -> list[list[str]]:
    return [
        ["compared with", "kind", "what it does"],
        *([f"{peer.name} {peer.version}".rstrip(), peer.kind, peer.more] for peer in peers),
    ]


def _lost(cells: Iterable[Cell]) -> list[list[str]]:
    """The comparisons with a ratio above 1. A curve has one line with the range of its ratios."""
    found: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.ratio and round(cell.ratio[1], 2) > 1:
            key = (cell.language, cell.case, cell.measure, cell.who)
            found.setdefault(key, []).append(cell)
    rows = [["language", "case", "measure", "compared with", "Fletching / this", "reason"]]
    for key, points in found.items():
        ratios = sorted(point.ratio[1] for point in points if point.ratio)
        shown = " to ".join(dict.fromkeys(f"{each:.2f}" for each in (ratios[0], ratios[-1])))
        rows.append([*key, shown, points[0].reason or "not known yet"])
    return rows


def _goals(cells: Iterable[Cell]) -> list[list[str]]:
    rows = [["language", "case", "figure", "today", "goal", "reached", "what it is spent on"]]
    for cell in cells:
        if cell.goal is not None:
            value = cell.value if cell.ratio is None else cell.ratio[1]
            unit = UNITS.get(cell.measure, cell.measure)
            today, goal = (
                (f"{cost(cell)} {unit}", f"{cell.goal:,g} {unit}")
                if cell.ratio is None
                else (f"{value:.2f}", f"{cell.goal:g}")
            )
            figure = unit if cell.ratio is None else f"{cell.measure}, as a multiple of {cell.who}"
            reached = round(value, 2) <= cell.goal
            why = ["yes", ""] if reached else ["no", cell.reason or "not known yet"]
            rows.append([cell.language, _case(cell), figure, today, goal, *why])
    return rows


def _lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    for number, row in enumerate(rows):
        yield f"| {' | '.join(row)} |\n"
        if number == 0:
            yield "|" + "---|" * len(row) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
