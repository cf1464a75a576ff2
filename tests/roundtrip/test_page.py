"""Tests of the page build/roundtrip.html, as text and in a browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cells import Cell, case_key, device_key, struct_key
from page import STATES, write_page
from provenance import Provenance
from verdicts import LEGEND, Verdict

LANGUAGES = ("bow", "quiver")
MADE = Provenance("2026-01-02T03:04:05Z", "0f5e-dirty", "Linux, x86_64, a <fast> processor")
# Contains text that would end the element of the data, and text that would be markup.
NASTY = "expected 1, got </script><script>document.title='taken'</script><b>&amp;"


def verdicts() -> list[Verdict]:
    """A struct, a case and a device cell of both languages; the second one has failures."""
    good = Cell(struct_key("bow", "ArrowSchema", "layout"), "real", "", 9, 0, ok=True)
    found = []
    for language in LANGUAGES:
        cells = [
            good,
            replace(good, key=case_key("", "int32", "array"), releases=2),
            replace(good, key=case_key("", "int32", "stream")),
            replace(good, key=case_key("", "utf8", "array"), releases=2),
            replace(good, key=device_key("", "cuda", "utf8", "chain"), status="stand-in"),
        ]
        keys = [replace(cell.key, language=language) for cell in cells]
        letters = ".. .s" if language == "bow" else "F.M.s"
        reasons = [""] * 5 if language == "bow" else [NASTY, "", "did not arrive", "", ""]
        found += [
            Verdict(replace(cell, key=key, reason=reason), letter)
            for cell, key, letter, reason in zip(cells, keys, letters, reasons, strict=True)
            if letter != " "
        ]
    return found


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "roundtrip.html"
    write_page(path, LANGUAGES, verdicts(), [f"quiver: abi: {NASTY}"], MADE)
    return path


def test_every_letter_has_one_state() -> None:
    assert sorted("".join(STATES.values())) == sorted(LEGEND)


def test_page_is_self_contained(page: Path) -> None:
    assert re.findall(r"""(?:src|href)=|url\(|@import|https?:""", page.read_text("utf-8")) == []


def test_page_has_time_and_platform(page: Path) -> None:
    text = "2026-01-02T03:04:05Z, commit 0f5e-dirty, Linux, x86_64, a &lt;fast&gt; processor"
    assert text in page.read_text("utf-8")


def test_summary_marks_wrong_cells(page: Path) -> None:
    marked = re.findall(r'<span class="wrong">([^<]*)</span>', page.read_text("utf-8"))
    assert marked == ["0/1", "2/3"]


def test_page_escapes_texts(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "<b>" not in text
    assert "document.title" in text
    assert text.count("<script") == text.count("</script>") == 2
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert NASTY in data["reasons"]


# --- In a browser


class _Text(HTMLParser):
    """The visible text of a page, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.text: dict[str, str] = {}  # by the id of the nearest element with an id
        self._open: list[tuple[str, str, bool]] = [("", "", False)]

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "input"):
            return
        found = dict(attributes)
        _, name, gone = self._open[-1]
        classes = (found.get("class") or "").split()
        gone = gone or "hidden" in found or "out" in classes or tag in ("script", "style")
        self._open.append((tag, found.get("id") or name, gone))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        _, name, gone = self._open[-1]
        if not gone:
            self.text[name] = f"{self.text.get(name, '')} {data.strip()}".strip()


Browse = Callable[..., dict[str, str]]


@pytest.fixture
def browse(page: Path) -> Browse:
    """Opens the page with a fragment and runs a script. Returns the visible text by element id."""
    names = ("chromium", "chromium-headless-shell", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("no Chromium is installed; hint: apt-get install chromium")

    def run(fragment: str = "", script: str = "") -> dict[str, str]:
        page.write_text(page.read_text("utf-8") + f"<script>{script}</script>", "utf-8")
        options = ["--headless", "--disable-gpu", f"--user-data-dir={page.parent}/profile"]
        if os.geteuid() == 0:
            options.append("--no-sandbox")
        command = [browser, *options, "--dump-dom", f"{page.as_uri()}{fragment}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        shown = _Text()
        shown.feed(done.stdout)
        return shown.text

    return run


def test_browser_shows_all_cells(browse: Browse) -> None:
    shown = browse()
    assert shown["count"] == "9 of 9 cells shown"
    assert "ArrowSchema . F" in shown["matrix"]
    assert "cuda utf8 s s" in shown["matrix"]
    assert "M missing" in shown["legend"] and "U" not in shown["legend"]
    assert NASTY in shown["failures"]
    assert shown["summary"].startswith(
        "language structs cases devices bow 1/1 2/2 1/1 quiver 0/1 2/3"
    )
    assert "taken" not in shown[""]


def test_address_filters_cells(browse: Browse) -> None:
    shown = browse("#language=quiver&state=wrong")
    assert shown["count"] == "2 of 9 cells shown"
    assert "quiver" in shown["matrix"] and "bow" not in shown["matrix"]
    assert "ArrowSchema F" in shown["matrix"] and "int32 M" in shown["matrix"]
    assert "cuda" not in shown["matrix"] and "utf8" not in shown["matrix"]


def test_group_and_text_filter_cells(browse: Browse) -> None:
    shown = browse("#group=cases&text=did+NOT+arrive")
    assert shown["count"] == "1 of 9 cells shown"
    assert shown["matrix"].endswith("int32 M")


def test_filter_is_stored_in_address(browse: Browse) -> None:
    choose = """
        form.elements.group.value = "devices";
        form.dispatchEvent(new Event("input"));
        document.getElementById("legend").textContent = location.hash;"""
    shown = browse("", choose)
    assert (shown["count"], shown["legend"]) == ("2 of 9 cells shown", "#group=devices")


@pytest.mark.parametrize(("event", "target"), [("mouseover", "F"), ("click", "F"), ("focusin", "")])
def test_pointer_on_letter_shows_cell(browse: Browse, event: str, target: str) -> None:
    script = f"""
        const found = letters.find(each => each.element.textContent === "F");
        const target = "{target}" ? found.element : found.field;
        target.dispatchEvent(new Event("{event}", {{bubbles: true}}));"""
    said = browse("", script)["details"]
    where = "quiver, structs, ArrowSchema, layout"
    assert said == f"{where}: failed: {NASTY} (real; 9 comparisons, 0 releases)"


# Focuses the only field at which the tab key stops, presses keys, and counts such fields again.
PRESS = """
    const stops = () => document.querySelectorAll('#matrix [tabindex="0"]');
    stops()[0].focus();
    for (const key of {keys}) {{
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {{key, bubbles: true}}));
    }}
    document.getElementById("legend").textContent = stops().length;"""


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([], "bow, structs, ArrowSchema"),
        (["ArrowRight"], "quiver, structs, ArrowSchema"),
        (["ArrowRight", "ArrowRight", "ArrowLeft"], "bow, structs, ArrowSchema"),
        (["ArrowUp"], "bow, structs, ArrowSchema"),
        (["ArrowRight", "ArrowDown"], "quiver, cases, int32"),
        (["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"], "bow, cases, utf8"),
    ],
)
def test_arrow_keys_move_single_tab_stop(browse: Browse, keys: list[str], said: str) -> None:
    shown = browse("", PRESS.format(keys=keys))
    assert shown["details"].startswith(said)
    assert shown["legend"] == "1"


def test_filter_moves_tab_stop_to_shown_field(browse: Browse) -> None:
    shown = browse("#group=devices", PRESS.format(keys=[]))
    assert shown["details"].startswith("bow, devices, cuda utf8")


def test_details_lie_below_cells(browse: Browse) -> None:
    script = """
        const box = name => document.querySelector(name).getBoundingClientRect();
        const below = box("main").bottom <= box("#details").top;
        document.getElementById("legend").textContent = below;"""
    assert browse("", script)["legend"] == "true"
