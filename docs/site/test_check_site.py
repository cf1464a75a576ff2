"""Tests that check_site.py finds each problem of a site and accepts a correct one."""

from __future__ import annotations

from pathlib import Path

import pytest

from check_site import main

GOOD = {
    "index.html": """
        <link rel="stylesheet" href="style.css"><a id="top"></a>
        <a href="sub/other.html#there">a</a> <a href="#top">b</a> <a href="https://example.org/x">c</a>
        <img src="picture.svg"><svg><use href="#icon"/></svg><img src="data:image/png;base64,AA==">
    """,
    "sub/other.html": """
        <link rel="stylesheet" href="../style.css?v=1"><pre>code</pre>
        <h1 id="there">x</h1><a href="../index.html">back</a>
    """,
    "style.css": """a { background: url(picture.svg) } b { src: url(data:font;base64,AA==) }
    """,
    "picture.svg": '<svg xmlns="http://www.w3.org/2000/svg" fill="url(#hatch)"/>',
}
BAD = [
    ("index.html", '<a href="none.html">', "none.html: no such file"),
    ("index.html", '<a href="sub/other.html#gone">', "#gone: no such anchor"),
    ("index.html", '<a href="#gone">', "#gone: no such anchor"),
    ("sub/other.html", '<a href="index.html">', "sub/other.html: index.html: no such file"),
    ("index.html", '<a href="https://nowhere">', "https://nowhere: no address"),
    ("index.html", '<a href="#top"><a id="x"></a>x</a>', "#top: has an anchor inside"),
    ("index.html", '<a href="http://example.org/">', "http://example.org/: no address"),
    ("index.html", '<img src="none.svg">', "none.svg: no such file"),
    ("index.html", '<script src="https://a.org/x.js"></script>', "is fetched from elsewhere"),
    (
        "index.html",
        '<link rel="preconnect" href="//fonts.a.org">',
        "is fetched from elsewhere",
    ),
    (
        "index.html",
        '<p style="background: url(https://a.org/x)">',
        "is fetched from elsewhere",
    ),
    ("style.css", '@import "https://example.org/x.css";', "style.css: https://example.org/x.css"),
    ("style.css", "a { src: url('https://example.org/x.woff2') }", "is fetched from elsewhere"),
    ("style.css", "a { src: url(none.woff2) }", "style.css: none.woff2: no such file"),
    ("picture.svg", "<style>@import url(https://example.org/x.css);</style>", "picture.svg: https"),
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, text in GOOD.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_check_site_accepts_valid_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(site)]) == 0
    assert capsys.readouterr().out == "2 pages, 4 links, 0 wrong\n"


@pytest.mark.parametrize(("file", "added", "said"), BAD)
def test_check_site_reports_mistake(
    file: str, added: str, said: str, site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / file).write_text(GOOD[file] + added, encoding="utf-8")
    assert main([str(site)]) == 1
    printed = capsys.readouterr().out
    assert said in printed
    assert printed.endswith(" 1 wrong\n")


def test_check_site_without_site_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path / "none")]) == 2
    assert main([]) == 2
    assert capsys.readouterr().err.count("make docs") == 3


@pytest.mark.parametrize(("generator", "code"), [("rustdoc", 0), ("javadoc/Writer", 0), ("x", 1)])
def test_check_site_skips_pages_of_other_generators(generator: str, code: int, site: Path) -> None:
    page = f'<meta name="generator" content="{generator}"><a href="none.html">x</a>'
    (site / "foreign.html").write_text(page, encoding="utf-8")
    assert main([str(site)]) == code
