"""The hand-written pages of docs/: the files and commands in them work as described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import DLPACK, REPOSITORY, Scratch

from fletching_generator import cli, render
from fletching_generator.spec.model import Spec

DOCS = REPOSITORY / "docs"


def blocks(page: Path, language: str) -> list[str]:
    """The code of a page in this language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    text = page.read_text(encoding="utf-8")
    return re.findall(pattern, text, flags=re.MULTILINE | re.DOTALL)


def test_a_device_is_added_as_the_guide_shows(
    scratch: Scratch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "adding-a-device.md"
    header = scratch.root / "dlpack.h"
    text = DLPACK.read_text(encoding="utf-8")
    for old, new in ("kDLTrn = 18,", "kDLTrn = 18, kDLNova = 90,"), ("_VERSION 3", "_VERSION 4"):
        assert text.count(old) == 1
        text = text.replace(old, new)
    header.write_text(text, encoding="utf-8")
    root = ["--root", str(scratch.root), "sync", str(header)]
    assert cli.main([*root, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert all(printed.startswith(shown) for shown in blocks(page, "text"))
    assert cli.main(root) == 0
    written = (scratch.root / "spec" / "devices.yaml").read_text(encoding="utf-8")
    entries = blocks(page, "yaml")
    assert entries and all(entry in written for entry in entries)


def test_a_language_is_added_as_the_guide_shows(spec: Spec, tmp_path: Path) -> None:
    page = DOCS / "adding-a-language.md"
    (module,) = blocks(page, "python")
    (template,) = blocks(page, "jinja")
    (tmp_path / "templates").mkdir(parents=True)
    (tmp_path / "templates/devices.zig").write_text(template, encoding="utf-8")
    language: dict[str, Any] = {}
    exec(compile(module, str(page), "exec"), language)
    ((path, text),) = render.render(
        language["outputs"](spec), language["FILTERS"], tmp_path / "templates"
    ).items()
    assert path == "bindings/zig/src/devices.zig"
    assert "pub const cuda_host: i32 = 3;\n" in text
    assert text.count("pub const ") == len(spec.devices)


def test_the_guide_lists_the_delimiters(spec: Spec) -> None:
    page = (DOCS / "adding-a-language.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| `(\S+) for \.\.\. (\S+)` \| `(\S+) ", page, flags=re.MULTILINE)
    shown = {
        ending: tuple(delimiters)
        for endings, *delimiters in rows
        for ending in re.findall(r"`(\.\w+)`", endings) or ["others"]
    }
    families = {**render._FAMILY, "others": "c-like"}
    keys = ("block_start_string", "block_end_string", "variable_start_string")
    assert shown == {
        ending: tuple(render._DELIMITERS[family][key] for key in keys)
        for ending, family in families.items()
    }
