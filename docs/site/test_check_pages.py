"""Tests that check_pages.py finds each kind of problem in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

import browser
import check_pages

PAGE = """<!doctype html><html lang="en"><head><!-- Generated with Sphinx --><title>A page</title>
<meta name="viewport" content="width=device-width"><style>
body {{ background: #fff; color: #222; overflow-wrap: anywhere }} {style}
@media (prefers-color-scheme: dark) {{ body {{ background: #111; color: {dark} }} }}
</style></head>
<body><main><h1>A page</h1><p>Some text.</p><pre>code</pre>{added}</main></body></html>
"""
BAD = [
    ({"dark": "#333"}, "1280 px, dark: color-contrast"),
    ({"style": "p { color: #999 }"}, "390 px, light: color-contrast"),
    ({"added": '<a href="x.html"><svg></svg></a>'}, "link-name"),
    ({"added": '<img src="picture.png">'}, "image-alt"),
    ({"added": '<div style="width: 800px">x</div>'}, "390 px, light: the page is too wide"),
    ({"style": "pre { white-space: pre-wrap }"}, "lines of code wrap"),
]

pytestmark = pytest.mark.skipif(
    browser.find() is None or not check_pages.AXE.is_file(),
    reason="no Chromium or no axe-core is installed: run docs/site/setup-browser",
)


def check(folder: Path, **changes: str) -> int:
    page = PAGE.format(**{"style": "", "dark": "#eee", "added": "", **changes})
    (folder / "index.html").write_text(page, encoding="utf-8")
    return check_pages.main([str(folder)])


def test_check_pages_accepts_good_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = check(tmp_path)
    assert capsys.readouterr().out == "1 pages, 3 looks of each, 0 problems\n"
    assert code == 0


@pytest.mark.parametrize(("changes", "said"), BAD)
def test_check_pages_reports_problem(
    changes: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(tmp_path, **changes) == 1
    assert said in capsys.readouterr().out


def test_check_pages_without_site_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_pages.main([]) == 2
    assert check_pages.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("make docs") == 2


def test_check_pages_names_missing_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_pages.main([str(tmp_path), "missing.html"]) == 2
    assert f"{tmp_path / 'missing.html'}: no such page" in capsys.readouterr().err
