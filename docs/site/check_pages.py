"""Opens every page of a built site in a headless Chromium. Reports what axe-core finds, pages that
are wider than the window, code whose lines wrap, and searches that do not find a symbol first.

    python docs/site/check_pages.py build/site [PAGE...]

Pages are paths in the site. Without them, all are checked but those that rustdoc, Javadoc and
gomarkdoc have written. Exit codes: 0 no problem, 1 found a problem, 2 could not run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import browser
from browser import Browser

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS = ((1280, "light"), (1280, "dark"), (390, "light"))
RUN = """
axe.run({resultTypes: ["violations"]}).then(found => found.violations.flatMap(rule =>
  rule.nodes.map(node => {
    const checks = node.any.concat(node.all, node.none).map(check => check.message);
    return `${rule.id}: ${node.target.join(" ")}: ${checks.join("; ") || rule.help}`;
  })))
"""
WIDTH = "document.documentElement.scrollWidth"
WRAPPED = """
[...document.querySelectorAll("pre")]
  .filter(each => getComputedStyle(each).whiteSpace !== "pre").length
"""
SEARCHED = ("DeviceArray", "export_with_event", "release_after", "SyncEvent", "move_to")
FIRST_RESULT = """
new Promise(resolve => {
  const look = () => {
    const first = document.querySelector("#search-results ul.search li > a");
    if (first) resolve(`${first.textContent} ${first.getAttribute("href")}`);
    else setTimeout(look, 50);
  };
  setTimeout(() => resolve("nothing"), 20000);
  look();
})
"""


def main(arguments: list[str]) -> int:
    program = browser.find()
    if not arguments or not Path(arguments[0]).is_dir():
        return _cannot("missing argument", "the folder of a site; hint: run make docs")
    if program is None or not AXE.is_file():
        return _cannot(
            "missing program", "Chromium and axe-core; hint: run docs/site/setup-browser"
        )
    root = Path(arguments[0])
    pages = [root / page for page in arguments[1:]] or list(pages_of(root))
    if not pages:
        return _cannot("no page found", "HTML files; hint: run make docs")
    for page in pages:
        if not page.is_file():
            return _cannot(f"{page}: no such page", "a path in the site, as VERSION/index.html")
    found = 0
    with Browser(program) as opened:
        for page in pages:
            for line in problems(opened, page):
                found += 1
                print(f"{page.relative_to(root)}: {line}", flush=True)
        for page in pages:
            for line in search_problems(opened, page) if page.name == "search.html" else ():
                found += 1
                print(f"{page.relative_to(root)}: {line}")
    print(f"{len(pages)} pages, {len(LOOKS)} looks of each, {found} problems")
    return 1 if found else 0


def pages_of(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        if 'http-equiv="refresh"' not in text and "Sphinx" in text[:2000]:
            yield path


def problems(opened: Browser, page: Path) -> Iterator[str]:
    """One line per problem and look of a page."""
    axe = AXE.read_text(encoding="utf-8")
    for width, scheme in LOOKS:
        opened.look(width, scheme)
        opened.open(page.resolve().as_uri())
        opened.run(axe)
        look = f"{width} px, {scheme}"
        yield from (f"{look}: {line}" for line in opened.run(RUN))
        wide = opened.run(WIDTH)
        if wide > width:
            yield f"{look}: the page is too wide: expected {width} pixels, got {wide}"
        wrapped = opened.run(WRAPPED)
        if wrapped:
            yield f"{look}: lines of code wrap: expected 'white-space: pre', got {wrapped} others"


def search_problems(opened: Browser, search: Path) -> Iterator[str]:
    """One line per name of SEARCHED whose first result is not that symbol of the API reference."""
    for name in SEARCHED:
        opened.open(f"{search.resolve().as_uri()}?q={name}")
        first = opened.run(FIRST_RESULT)
        if not re.search(rf"^\S*\b{name}\S* api/", first):
            yield f"search for {name}: expected the symbol in api/ first, got {first}"


def _cannot(problem: str, expected: str) -> int:
    print(f"check_pages: {problem}: expected {expected}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
