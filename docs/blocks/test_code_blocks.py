"""Tests that each problem of a code block is found and a correct block passes."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from code_blocks import all_blocks, blocks_of, problems, run_language, write
from languages import ROOT, Blocks, load

KNOWN = load()
HOME = next(each for each in KNOWN.values() if each.blocks)

RIGHT = [
    "```text\nanything\n```",
    "```sh\nmake help && cd tests/faults && ./faults.py --sample  # some\n```",
    "```sh\nfor x in 1 2; do make docs; done; fletching layout ArrowArray --json\n```",
    "```sh\ncmake --preset default && ctest --preset default\n```",
    "```sh\nA=b .venv/bin/python tools/suite.py --all\n```",
    "```sh run\necho 1 &&\\\n  echo 2\n```\n\n```text output\n1\n2\n```",
    "```yaml\na: [1]\n```",
    "1. A list:\n\n   ```toml\n   [a]\n   ```",
    '```text docs/site/axe/package.json\n{\n  "private": true,\n```',
]
WRONG = [
    ("```\nx\n```", "page.md:2: nothing runs ''"),
    ("```quiver\nx\n```", "page.md:2: nothing runs 'quiver': expected one of sh, text, "),
    (f"\n```text\n{'x' * 101}\n```", "page.md:3: line is too long"),
    ("```text README.md/x\nx\n```", "no such file: README.md/x"),
    ("```text docs/site/axe/package.json\n[\n```", "not in docs/site/axe/package.json"),
    ("```text docs/site/axe/package.json\nprivate\n```", "not in docs/site/axe/package.json"),
    ("```sh runs\ntrue\n```", "unknown 'runs'"),
    ("```sh run\nfalse | cat\n```", "exit code 1"),
    ("```sh run\necho 1\n```\n```text output\n2\n```", "wrong output: expected\n2\ngot\n1\n"),
    ("```sh\necho 1\n```\n```text output\n1\n```", "nothing compares the output"),
    ("```yaml\na: [\n```", "not yaml"),
    ("```toml\na\n```", "not toml"),
    ("```xml\n<a>\n```", "not xml"),
    ("```sh\nmake helper\n```", "make helper: no target helper"),
    ("```sh\nmake docs && make test-quiver\n```", "no target test-quiver"),
    ("```sh\n.venv/bin/fletching layot\n```", "fletching layot: "),
    ("```sh\nfletching generate --chek\n```", "unrecognized arguments: --chek"),
    ("```sh\ncmake --preset defalt\n```", "no preset defalt"),
    ("```sh\ntools/sweet.py\n```", "no such file: tools/sweet.py"),
    ("```sh\n.venv/bin/python tools/suite.py --everything\n```", "no option --everything"),
    ("```sh\nA=b $(quiverc x)\n```", "quiverc x: no such command"),
    ("```sh\ncd tests/quiver\n```", "no such folder"),
]


def found(page: str) -> list[str]:
    return [line for block in blocks_of("page.md", page) for line in problems(block, KNOWN)]


@pytest.mark.parametrize("page", RIGHT)
def test_valid_block_has_no_problem(page: str) -> None:
    assert blocks_of("page.md", page)
    assert found(page) == []


@pytest.mark.parametrize(("page", "said"), WRONG)
def test_wrong_block_is_reported(page: str, said: str) -> None:
    (line,) = found(page)
    assert line.startswith("page.md:") and said in line


def test_pages_are_tracked_files(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("a.md", "docs/b.md", "docs/reference/c.md", "x/templates/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("```text\nx\n```\n", encoding="utf-8")
    assert [block.place for block in all_blocks(tmp_path)] == ["a.md:2", "docs/b.md:2"]


def test_write_creates_blocks_and_outputs(tmp_path: Path) -> None:
    """Writes the blocks of all pages. The files are named after their places."""
    page = "```q\n1\n```\n```text output\n2\n```\n```q docs/site/axe/package.json\n3\n```\n"
    write([b for b in blocks_of("docs/a.md", page) if not b.more], tmp_path / "blocks")
    written = {path.name: path.read_text("utf-8") for path in (tmp_path / "blocks").iterdir()}
    assert written == {"docs-a-2.q": "1\n", "docs-a-2.output": "2\n"}


@pytest.mark.parametrize(("command", "code"), [("test -d $BLOCKS", 0), ("false; true", 1)])
def test_command_result_is_returned(command: str, code: int, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / HOME.folder).mkdir(parents=True)
    assert run_language(replace(HOME, blocks=Blocks(("q",), command)), tmp_path) == code
    assert run_language(replace(HOME, blocks=None), tmp_path) == 2


# The columns of the comparison in docs/index.md, as docs/measured calls them.
WHO = ("Fletching", "raw C", "nanoarrow", "libarrow")
UNITS = {"instructions": "instructions", "nanoseconds": "ns"}


def test_comparison_has_measured_figures() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*; (?:instructions|nanoseconds) \|.*\|$", text, re.MULTILINE)
    measured = benchmarks("C++")
    assert rows
    for row in rows:
        title, *costs = cells(row)
        case, measure = title.rsplit("; ", 1)
        for who, cost in zip(WHO, costs, strict=True):
            if cost:
                assert any(
                    same_case(case, line[0])
                    and (line[1] == who or (who == "raw C" and "hand-written" in line[1]))
                    and line[2:4] == [cost, UNITS[measure]]
                    for line in measured
                ), (row, who)


def test_compile_times_are_measured() -> None:
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    section = text.partition("## Compile time")[2].partition("\n## ")[0]
    head, _, *rows = (cells(line) for line in section.splitlines() if line.startswith("|"))
    measured = {(case, who): cost for case, who, cost, *_ in benchmarks("C++")}
    for name, *costs in rows:
        case = name.partition(" (")[0]
        assert costs == [measured.get((case, who), "") for who in head[1:]], case


def test_sizes_of_sources_are_right() -> None:
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    for folder in ("cpp/bundle", "cpp/include"):
        size = re.search(rf"(\d+) kB of source \| `[^`]*{folder}", text)
        assert size, folder
        found = sum(each.stat().st_size for each in (ROOT / folder).rglob("*") if each.is_file())
        assert found == pytest.approx(int(size[1]) * 1000, rel=0.02), folder


def same_case(title: str, case: str) -> bool:
    """Whether the words of a title are in the name of a case, such as "one leaf to DLPack"."""
    return set(re.findall(r"\w+", title)) - {"one", "a"} <= set(re.findall(r"\w+", case))


def benchmarks(language: str) -> list[list[str]]:
    """The lines of the language: case, who, cost, unit and more."""
    text = (ROOT / "docs" / "measured" / "benchmarks.md").read_text(encoding="utf-8")
    lines = (cells(line) for line in text.splitlines() if line.startswith("|"))
    return [line[1:] for line in lines if line[0] == language and len(line) == 9]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
