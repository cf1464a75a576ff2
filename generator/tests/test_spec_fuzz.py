"""Tests that for any content of the spec files `check-spec` succeeds or reports lines with places.

Seeded, so that every run uses the same modified files. `python tests/test_spec_fuzz.py COUNT SEED`
runs more of them.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

from fletching_generator.cli import main
from fletching_generator.reading.yaml_reader import read_yaml

FILES = sorted(p.relative_to(REPOSITORY) for p in (REPOSITORY / "spec").rglob("*.yaml"))
LINE = re.compile(r"spec/[\w./-]+\.yaml:[1-9]\d*: [^\n]+: [^\n]+; [^\n]+")
WORDS = """: : :|null: 1|~: x|true: no|1: 2|? a|? [a]|- |- - -|&a b|*a|!!int 3|!x y|---|...|{|}|[
]|"|'||{a: }|[[[[|>-|%YAML 1.1|<<: {a: 1}|a: 1.5|a: .nan|a: 0x1F|# x|a: b: c
\t|\ufeff|\x00|\x85|"\\ud800\""""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 2**31, -(2**63), 10**30, "", " ", "x", "a b", "é\u2028", "\n"),
    *("a\nb", "../x", "callback()", "int64[99999999999]", "ArrowArray", "{{", "*/", "\ud83d\ude00"),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": {"b": []}}, ["x", "x"], {"name": "x"}),
)


def spoil_text(text: str, dice: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = dice.randrange(len(lines))
    word = dice.choice(re.split(r"[|\n]", WORDS))
    indent = " " * dice.choice((0, 2, 4, 6, len(lines[at]) - len(lines[at].lstrip())))
    match dice.randrange(6):
        case 0:
            lines.insert(at, f"{indent}{word}\n")
        case 1:
            lines[at] = lines[at].replace(":", f": {word}", 1)
        case 2:
            del lines[at : at + dice.randrange(1, 4)]
        case 3:
            lines.insert(dice.randrange(len(lines)), lines[at])
        case 4:
            lines[at] = indent + lines[at].lstrip()
        case _:
            return text[: dice.randrange(len(text))] + word
    return "".join(lines)


def spoil_data(content: Any, dice: random.Random) -> str:
    """Replaces or removes the value in one place, and returns JSON, which is also YAML."""
    places = list(places_of(content))
    holder, key = dice.choice(places)
    match dice.randrange(5):
        case 0 | 1:
            holder[key] = dice.choice(VALUES)
        case 2:
            other, its_key = dice.choice(places)
            holder[key] = json.loads(json.dumps(other[its_key]))
        case 3:
            del holder[key]
        case _:
            if isinstance(holder, list):
                holder.append(holder[key])
            else:
                holder[dice.choice(("", "x", "null", "a\nb", "name"))] = holder.pop(key)
    return json.dumps(content, indent=1, ensure_ascii=dice.random() < 0.5)


def places_of(node: Any) -> Any:
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from places_of(value)


def run(root: Path, file: Path, text: str, *command: str) -> None:
    """Runs check-spec with `text` as the file's content; it must not crash."""
    path = root / file
    good = path.read_bytes()
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["--root", str(root), *command])
        assert code in (0, 1)
        if not out.getvalue():
            assert code == 1
            lines = err.getvalue().splitlines()
            assert lines
            odd = [line for line in lines if not LINE.fullmatch(line)]
            assert not odd, odd
    finally:
        path.write_bytes(good)


def runs(root: Path, count: int, seed: int, *command: str) -> None:
    for number in range(count):
        dice = random.Random(f"{seed} {number}")
        file = dice.choice(FILES)
        text = (root / file).read_text(encoding="utf-8")
        by_text = dice.random() < 0.5
        spoiled = spoil_text(text, dice) if by_text else spoil_data(read_yaml(text)[0], dice)
        try:
            run(root, file, spoiled, *command)
        except BaseException:
            Path(tempfile.gettempdir(), "fletching-fuzz.yaml").write_text(spoiled, errors="replace")
            print(f"run {number} of seed {seed}, {file}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_check_spec_reports_lines_for_fuzzed_files(seed: int, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "spec", tmp_path / "spec")
    runs(tmp_path, 75, seed, "check-spec")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPOSITORY / "spec", Path(folder, "spec"))
        runs(Path(folder), int(sys.argv[1]), int(sys.argv[2]), *(sys.argv[3:] or ["check-spec"]))
