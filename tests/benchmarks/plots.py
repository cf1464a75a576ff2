"""Draws the plots of docs/measured/benchmarks.md, as SVG with colors for light and dark screens."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from rows import BY_HAND, LIBRARY, Cell

mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.hashsalt": "fletching",  # the same ids in every run
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)

# Matplotlib draws with the color for light screens. A variable replaces it in the file. The colors
# of lines are from the palette of Okabe and Ito, and differ in brightness too.
DARK = {
    "#1f2328": "#e6edf3",  # text and axes
    "#d1d9e0": "#30363d",  # grid
    "#0072b2": "#56b4e9",
    "#59636e": "#9198a1",
    "#d55e00": "#f0a35e",
    "#007a5a": "#2fc79a",
    "#a8578a": "#e3a0cb",
}
INK, GRID, *LINES = DARK
OURS, BASELINE, MORE = LINES[:3]
MARKERS = "osD^v"


@dataclass(frozen=True)
class Plot:
    """A file of the page. It shows the cells of a topic, or the ratios of all topics."""

    file: str
    topic: str
    language: str
    alt: str


RESULT = "Result"
PLOTS = (
    Plot("bench-baselines.svg", RESULT, "", "Ratios to hand-written code, most of them near 1"),
    Plot("bench-libraries.svg", RESULT, "", "Ratios to other libraries, most of them far below 1"),
    Plot("bench-columns-cpp.svg", "Handoff of columns", "C++", "C++: cost by number of columns"),
    Plot(
        "bench-columns-python.svg",
        "Handoff of columns",
        "Python",
        "Python: cost by number of columns",
    ),
    Plot("bench-batches.svg", "Streams", "C++", "C++: cost of a batch by number of batches"),
    Plot("bench-memory.svg", "Memory", "", "Bytes of a leaf and of a batch of 1,000 columns"),
)


def images(topic: str) -> Iterator[str]:
    """The Markdown of a topic's plots."""
    for plot in PLOTS:
        if plot.topic == topic:
            yield f"![{plot.alt}]({plot.file})\n\n"


def write(cells: Sequence[Cell], kinds: Mapping[str, str], folder: Path) -> None:
    for plot in PLOTS:
        (folder / plot.file).write_text(draw(plot, cells, kinds), encoding="utf-8")


def draw(plot: Plot, cells: Sequence[Cell], kinds: Mapping[str, str]) -> str:
    of_topic = [cell for cell in cells if cell.topic == plot.topic]
    if plot.topic == RESULT:
        kind = BY_HAND if plot.file == "bench-baselines.svg" else LIBRARY
        figure = _ratios([each for each in cells if kinds.get(each.who) == kind])
    elif plot.topic == "Memory":
        figure = _memory(of_topic)
    else:
        figure = _curve([each for each in of_topic if each.language == plot.language and each.size])
    return _svg(figure)


def _ratios(cells: Sequence[Cell]) -> Figure:
    """A bar from 1 to each ratio. A case that is counted and timed has the first of both."""
    found: dict[str, float] = {}
    for cell in cells:
        if cell.ratio and cell.in_summary and cell.measure in ("instructions", "nanoseconds"):
            found.setdefault(_short(cell), cell.ratio[1])
    figure, axes = _axes(1 + 0.21 * len(found))
    names, ratios = list(found), list(found.values())
    colors = [MORE if ratio > 1 else OURS for ratio in ratios]
    axes.barh(names, [ratio - 1 for ratio in ratios], left=1, color=colors, height=0.6)
    axes.set_xscale("log")
    _number_ticks(axes.xaxis)
    axes.axvline(1, color=INK, linewidth=1)
    for place, ratio in enumerate(ratios):
        side = "left" if ratio > 1 else "right"
        shown = f" {ratio:.2g} "
        axes.text(ratio, place, shown, va="center", ha=side, color=INK, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.2, y=0.01)
    axes.set_xlabel("Fletching / this")
    return figure


def _short(cell: Cell) -> str:
    """A name without the details that the table has."""
    case = ", ".join(cell.case.replace("`", "").split(", ")[:2])
    return f"{cell.language}: {case} / {re.split('[,:]', cell.who)[0]}"


def _curve(cells: Sequence[Cell]) -> Figure:
    """The cost divided by the size, against the size."""
    figure, axes = _axes(3.4)
    lines: dict[str, list[tuple[int, float]]] = {}
    for cell in cells:
        assert cell.size is not None
        lines.setdefault(cell.who, []).append((cell.size, cell.value / cell.size))
    axes.set_xscale("log")
    axes.set_yscale("log")
    _number_ticks(axes.xaxis)
    _number_ticks(axes.yaxis)
    ends = []
    for (who, points), color, marker in zip(lines.items(), LINES, MARKERS, strict=False):
        axes.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=4)
        ends.append((points[-1][1], f"{who}: {points[-1][1]:,.0f}", color))
    _label_ends(axes, ends)
    unit, noun = cells[0].measure, "batch" if cells[0].topic == "Streams" else "column"
    axes.set_xlabel("batches" if noun == "batch" else "columns")
    axes.set_ylabel(f"{unit} for each {noun}")
    return figure


def _label_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Writes each name beside the end of its line, at least a line of text apart."""
    bottom, top = axes.get_ylim()
    low = -1.0
    for y, name, color in sorted(ends):
        low = max(low + 0.075, math.log(y / bottom) / math.log(top / bottom))
        axes.text(1.02, low, name, transform=axes.transAxes, va="center", color=color)


def _memory(cells: Sequence[Cell]) -> Figure:
    found = {f"{cell.language}: {cell.case} / {cell.who}": cell for cell in cells}
    figure, axes = _axes(1 + 0.21 * len(found))
    values = [cell.value for cell in found.values()]
    colors = [OURS if cell.ratio is None else BASELINE for cell in found.values()]
    axes.barh(list(found), values, color=colors, height=0.6)
    axes.set_xscale("log")
    _number_ticks(axes.xaxis)
    for place, value in enumerate(values):
        axes.text(value, place, f" {value:,.0f}", va="center", color=INK, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12, y=0.01)
    axes.set_xlabel("bytes")
    return figure


def _number_ticks(axis: XAxis | YAxis) -> None:
    """Writes numbers such as 0.1 and 1,000 at the ticks of a logarithmic axis."""
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axis.set_minor_formatter(NullFormatter())


def _axes(height: float) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(8.6, height), layout="constrained")
    axes.grid(color=GRID, linewidth=0.6, axis="x")
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    for spine in axes.spines.values():
        spine.set_color(INK)
    return figure, axes


def _svg(figure: Figure) -> str:
    """The file, with a variable for each color."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    light = "".join(f"--c{number}:{color};" for number, color in enumerate(DARK))
    dark = "".join(f"--c{number}:{color};" for number, color in enumerate(DARK.values()))
    style = (
        f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{background:#0d1117;{dark}}}}}"
        "</style>"
    )
    drawn = out.getvalue()
    for number, color in enumerate(DARK):
        drawn = re.sub(re.escape(color) + r"\b", f"var(--c{number})", drawn)
    drawn = re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE)
    return re.sub(r"(<svg[^>]*>)", lambda match: f"{match[1]}\n {style}", drawn, count=1)
