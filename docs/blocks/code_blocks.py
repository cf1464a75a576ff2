"""Runs or checks every code block of every hand-written page.

    code_blocks.py             shell, data and excerpts; a block that nobody runs is an error
    code_blocks.py LANGUAGE    the blocks of one language, as [blocks] of its language.toml says

A fence names its language and can have more words:

    LANGUAGE FILE    an exact excerpt of that file of the repository
    sh run           is run at the root of the repository
    text output      the output of the preceding block
    text             no code

Exit codes: 0 every block is right, 1 one is wrong, 2 could not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import languages
import shell_lines
from languages import ROOT, Language, LanguageError

_FENCE = re.compile(r"^( *)```(.*)\n((?:.*\n)*?)\1```$", re.MULTILINE)
_MOST_COLUMNS = 100  # width that the site shows without scrolling
# Generated pages, page templates, and the home of a language that is not part of this tree.
_NO_PAGES = re.compile(r"^docs/(reference|measured)/|/templates/|^tests/new_language/")
_PARSERS: Mapping[str, Callable[[str], object]] = {
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "xml": xml.etree.ElementTree.fromstring,
}
_TESTED = {"jinja": "generator/tests/test_guides.py"}  # rendered by that test


@dataclass(frozen=True)
class Block:
    page: str  # "docs/tutorial.md"
    line: int  # line of its first code
    fence: str  # "cpp"
    more: str  # the rest of the info string
    text: str
    output: str | None = None  # contents of the `text output` block after it

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        fence, _, more = match[2].partition(" ")
        line = text.count("\n", 0, match.start(3)) + 1
        code = re.sub(f"^{match[1]}", "", match[3], flags=re.MULTILINE)
        if (fence, more) == ("text", "output") and found:
            found[-1] = Block(**{**vars(found[-1]), "output": code})
        else:
            found.append(Block(page, line, fence, more, code))
    return found


def all_blocks(root: Path = ROOT) -> Iterator[Block]:
    """The blocks of all pages that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for page in listed.splitlines():
        if not _NO_PAGES.search(page) and (root / page).is_file():
            yield from blocks_of(page, (root / page).read_text(encoding="utf-8"))


def problems(block: Block, known: Mapping[str, Language], root: Path = ROOT) -> Iterator[str]:
    """The problems of a block that can be found without running it."""
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        if len(line) > _MOST_COLUMNS:
            length = f"expected at most {_MOST_COLUMNS} characters, got {len(line)}"
            yield f"{block.page}:{number}: line is too long: {length}"
    homes = [fence for each in known.values() if each.blocks for fence in each.blocks.fences]
    fences = ["sh", "text", *_PARSERS, *_TESTED, *homes]
    runs = block.fence in homes or (block.fence, block.more) == ("sh", "run")
    if block.fence not in fences:
        yield f"{block.place}: nothing runs '{block.fence}': expected one of {', '.join(fences)}"
    elif block.output is not None and not runs:
        yield f"{block.place}: nothing compares the output: the block before it is not run"
    elif "/" in block.more:
        yield from _excerpt(block, root)
    elif block.more and (block.fence, block.more) != ("sh", "run"):
        yield f"{block.place}: unknown '{block.more}': expected a file, or 'run' of sh"
    elif block.fence == "sh":
        yield from shell_lines.problems(block.text, block.place, known, root)
        if block.more == "run":
            yield from _run(block, root)
    elif block.fence in _PARSERS:
        try:
            _PARSERS[block.fence](block.text)
        except (yaml.YAMLError, tomllib.TOMLDecodeError, xml.etree.ElementTree.ParseError) as error:
            yield f"{block.place}: not {block.fence}: {error}"


def _excerpt(block: Block, root: Path) -> Iterator[str]:
    path = root / block.more
    if not path.is_file():
        yield f"{block.place}: no such file: {block.more}"
    elif f"\n{block.text}" not in f"\n{path.read_text(encoding='utf-8')}":
        yield f"{block.place}: not in {block.more}: expected unchanged lines of that file"


def _run(block: Block, root: Path) -> Iterator[str]:
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield f"{block.place}: exit code {done.returncode}: {done.stderr.strip()}"
    elif block.output is not None and done.stdout != block.output:
        yield f"{block.place}: wrong output: expected\n{block.output}got\n{done.stdout}"


def write(blocks: list[Block], folder: Path) -> None:
    """Writes a file for each block, named after its place, and one with its expected output."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for block in blocks:
        page = block.page.removesuffix(".md").replace("/", "-")
        path = folder / f"{page}-{block.line}.{block.fence}"
        path.write_text(block.text, encoding="utf-8")
        if block.output is not None:
            path.with_suffix(".output").write_text(block.output, encoding="utf-8")


def run_language(language: Language, root: Path = ROOT) -> int:
    if language.blocks is None:
        print(
            f"code_blocks: {language.folder}/{languages.FILE}: no [blocks]: expected that table",
            file=sys.stderr,
        )
        return 2
    own = [b for b in all_blocks(root) if b.fence in language.blocks.fences and "/" not in b.more]
    folder = root / "build" / "blocks" / language.name
    write(own, folder)
    variables = {**os.environ, **languages.environment(language, root), "BLOCKS": str(folder)}
    command = ["bash", "-euo", "pipefail", "-c", language.blocks.run]
    done = subprocess.run(command, cwd=root / language.folder, env=variables, check=False)
    print(f"{language.title}: {len(own)} blocks, exit code {done.returncode}")
    return 1 if done.returncode else 0


def main(arguments: list[str]) -> int:
    known = languages.load()
    match arguments:
        case []:
            blocks = list(all_blocks())
            found = [line for block in blocks for line in problems(block, known)]
            print(*found, sep="\n", end="\n" if found else "")
            print(f"{len(blocks)} blocks, {len(found)} wrong")
            return 1 if found else 0
        case [name] if name in known:
            return run_language(known[name])
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LanguageError as error:
        print(f"code_blocks: {error}", file=sys.stderr)
        sys.exit(2)
