"""The choices that site.js adds above a table of findings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import browser

SCRIPT = Path(__file__).with_name("static") / "site.js"
ROWS = (("feather", "error", "a.b"), ("feather", "note", "c.d"), ("quill", "note", "a.b"))
VISIBLE = "[...document.querySelectorAll('tbody tr')].map(row => row.hidden ? 0 : 1).join('')"
CHOOSE = "(c => {{ c.value = '{1}'; c.dispatchEvent(new Event('change')) }})({0})"
CHOICE = "document.querySelectorAll('.filters select')[{0}]"

pytestmark = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium is installed: run docs/site/setup-browser"
)


def _page(*head: str) -> str:
    cells = "".join(f"<th>{name}</th>" for name in head)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in ROWS)
    table = f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<!doctype html><title>x</title>{table}<script>{SCRIPT.read_text('utf-8')}</script>"


@contextmanager
def _opened(folder: Path, *head: str) -> Iterator[browser.Browser]:
    file = folder / "page.html"
    file.write_text(_page(*head), encoding="utf-8")
    program = browser.find()
    assert program is not None
    with browser.Browser(program) as opened:
        opened.open(file.as_uri())
        yield opened


def test_choices_hide_rows_and_work_by_keyboard(tmp_path: Path) -> None:
    with _opened(tmp_path, "library", "severity", "rule") as opened:
        assert opened.run(VISIBLE) == "111"
        opened.run(CHOOSE.format(CHOICE.format(1), "note"))
        assert opened.run(VISIBLE) == "011"
        opened.run(CHOOSE.format(CHOICE.format(2), "a.b"))
        assert opened.run(VISIBLE) == "001"
        assert opened.run("document.querySelector('.filters output').value") == "1 of 3 rows"
        opened.run(f"{CHOICE.format(2)}.focus()")
        opened.press("Home")
        assert opened.run(VISIBLE) == "011"


def test_other_table_has_no_choices(tmp_path: Path) -> None:
    with _opened(tmp_path, "library", "version", "rule") as opened:
        assert opened.run("document.querySelectorAll('.filters').length") == 0
