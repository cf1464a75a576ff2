"""Tests that the files and commands in the hand-written pages of docs/ work as described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Scratch

from fletching_generator import cli, render
from fletching_generator.spec.model import Spec

DOCS = REPOSITORY / "docs"


def blocks(page: Path, language: str) -> list[str]:
    """Returns the code blocks of a page in this language."""
    pattern = rf"^```{language}\n(.*?)^```$"
    text = page.read_text(encoding="utf-8")
    return re.findall(pattern, text, flags=re.MULTILINE | re.DOTALL)


def test_adding_device_matches_guide(
    scratch: Scratch, dlpack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = DOCS / "adding-a-device.md"
    header = scratch.root / "dlpack.h"
    text = dlpack.read_text(encoding="utf-8")
    if "kDLNova = 90" not in text:
        text = text.replace("kDLTrn = 18,", "kDLTrn = 18, kDLNova = 90,")
    header.write_text(re.sub(r"(MINOR_VERSION) \d+", r"\1 4", text), encoding="utf-8")
    # If the guide was followed in this tree, the device already exists, and perhaps the version.
    devices, codes = (scratch.root / "spec" / f"{name}.yaml" for name in ("devices", "dlpack"))
    known = devices.read_text(encoding="utf-8")
    known = re.sub(r"\n  - name: nova\n(?:    .*\n)*", "", known)
    devices.write_text(known, encoding="utf-8")
    known = codes.read_text(encoding="utf-8")
    known = re.sub(r"(DLPACK_MINOR_VERSION\n    value:) \d+", r"\1 3", known)
    codes.write_text(known, encoding="utf-8")
    root = ["--root", str(scratch.root), "sync", str(header)]
    assert cli.main([*root, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert all(printed.startswith(shown) for shown in blocks(page, "text"))
    assert cli.main(root) == 0
    written = (scratch.root / "spec" / "devices.yaml").read_text(encoding="utf-8")
    entries = blocks(page, "yaml")
    assert entries and all(entry in written for entry in entries)


def test_adding_language_matches_guide(spec: Spec, tmp_path: Path) -> None:
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


def test_guide_lists_delimiters(spec: Spec) -> None:
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
