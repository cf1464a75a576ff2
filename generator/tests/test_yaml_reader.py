"""Tests the YAML reader: same data and lines as another parser, and a line for each rejection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Scratch
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from fletching_generator.cli import main
from fletching_generator.reading.yaml_reader import Lines, YamlError, read_yaml

FILES = sorted((REPOSITORY / "spec").rglob("*.yaml"))


def lines_of(node: Any, path: tuple[str | int, ...] = ()) -> Lines:
    """Returns the line of every key according to ruamel's round-trip parser."""
    found: Lines = {}
    items = node.items() if isinstance(node, CommentedMap) else enumerate(node)
    for key, value in items:
        place = node.lc.key(key) if isinstance(node, CommentedMap) else node.lc.item(key)
        found[(*path, key)] = place[0] + 1
        if isinstance(value, CommentedMap | CommentedSeq):
            found |= lines_of(value, (*path, key))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_reader_agrees_with_ruamel(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    content, lines = read_yaml(text)
    other = YAML(typ="rt", pure=True).load(text)
    assert content == other
    assert lines == lines_of(other)


def test_reads_scalar_values() -> None:
    text = "[~, null, '', true, 'true', yes, 010, -1, +2, 0x1F, 0o17, 1e, 1.2.3, 2001-01-01, 1:30]"
    assert read_yaml(text)[0] == [
        *(None, None, "", True, "true", "yes", 10, -1, 2, 31, 15),
        *("1e", "1.2.3", "2001-01-01", "1:30"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\n: : :\n", 2, "a key is null: expected text"),
        ("a: 1\nnull: 2\n", 2, "a key is null: expected text"),
        ("a: 1\n? \n: 2\n", 2, "a key is null: expected text"),
        ("- true: 2\n", 1, "a key is true: expected text"),
        ("a: {1: 2}\n", 1, "a key is 1: expected text"),
        ("? [a]\n: 1\n", 1, "a key is a mapping or a list"),
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' is a duplicate"),
        ("a: &b 1\n", 1, "'&b' is an anchor"),
        ("a: 1\nc: *b\n", 2, "'*b' is an alias"),
        ("a: !!int '1'\n", 1, "'tag:yaml.org,2002:int' is a tag"),
        ("a: 1\n---\nb: 2\n", 2, "not YAML: but found another document"),
        ("a:\n  - 1.10\n", 2, "1.10 is a fraction"),
        ("a: .nan\n", 1, ".nan is a fraction"),
        (f"a: {'9' * 5000}\n", 1, "a number has 5000 digits"),
        ("[" * 900 + "]" * 900, 1, "too many levels"),
        ("- " * 100_000, 1, "too many levels"),
        ("a: [1\n", 2, "not YAML: "),
        ("a: \x07\n", 1, "not YAML: "),
    ],
)
def test_rejects_unsupported_yaml(text: str, line: int, problem: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    assert (caught.value.line, caught.value.problem[: len(problem)]) == (line, problem)
    assert caught.value.hint


def test_null_key_is_reported_with_line(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = scratch.root / "spec" / "devices.yaml"
    last = path.read_text(encoding="utf-8").count("\n")
    for text, line in ((": : :\n", last + 1), ("null: 1\n", last + 1)):
        good = path.read_text(encoding="utf-8")
        path.write_text(good + text, encoding="utf-8")
        assert main(["--root", str(scratch.root), "check-spec"]) == 1
        assert f"spec/devices.yaml:{line}: (syntax): " in capsys.readouterr().err
        path.write_text(good, encoding="utf-8")
