"""Checks a built site for dead links and anchors, and for files that a browser would fetch from
other hosts.

    python docs/site/check_site.py build/site

Exit codes: 0 no problem, 1 found a problem, 2 could not run.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes with an address that a browser fetches by itself.
FETCHED = {"src", "srcset", "poster", "data"}
IN_CSS = re.compile(r"""(?:@import\s+(?:url\(\s*)?|url\(\s*)["']?([^"')\s;]+)""")
FOREIGN = ("rustdoc", "javadoc")
HOST = re.compile(r"([a-z0-9-]+\.)+[a-z]{2,}")


@dataclass
class Page(HTMLParser):
    """The anchors of a page and the addresses in it."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)  # followed by a reader
    fetched: list[str] = field(default_factory=list)  # fetched by the browser
    nested: list[str] = field(default_factory=list)  # links that contain an anchor, which ends them
    open_link: str | None = None
    foreign: bool = False  # written by rustdoc or Javadoc, which check their own links

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meta" and dict(attrs).get("name") == "generator":
            self.foreign |= (dict(attrs).get("content") or "").startswith(FOREIGN)
        if tag == "a":
            if self.open_link is not None:
                self.nested.append(self.open_link)
            self.open_link = dict(attrs).get("href") or ""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name in FETCHED or (name == "href" and tag in ("link", "image", "use")):
                self.fetched.append(value)
            elif name == "style":
                self.fetched += IN_CSS.findall(value)

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self.open_link = None


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(
            "check_site: missing argument: expected the folder of a site; hint: run make docs",
            file=sys.stderr,
        )
        return 2
    root = Path(arguments[0])
    pages = read_pages(root)
    if not pages:
        print(f"check_site: {root}: no page found; hint: run make docs", file=sys.stderr)
        return 2
    found = check(root, pages)
    print("".join(f"{line}\n" for line in found), end="")
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(found)} wrong")
    return 1 if found else 0


def read_pages(root: Path) -> dict[Path, Page]:
    pages = {}
    for path in sorted(root.rglob("*.html")):
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    return pages


def check(root: Path, pages: dict[Path, Page]) -> list[str]:
    """One line per problem."""
    found = []
    for path, page in pages.items():
        if page.foreign:
            continue
        wrong = [(link, _wrong_link(path, link, pages)) for link in page.links]
        wrong += [(address, _wrong_fetch(path, address)) for address in page.fetched]
        wrong += [(link, "has an anchor inside, and is dead") for link in page.nested]
        name = path.relative_to(root.resolve()).as_posix()
        found += [f"{name}: {link}: {problem}" for link, problem in wrong if problem]
    for pattern in ("*.css", "*.svg"):
        for path in sorted(root.rglob(pattern)):
            found += _wrong_file(root, path)
    return found


def _wrong_link(path: Path, link: str, pages: dict[Path, Page]) -> str:
    """Returns the problem with a link that a reader can follow, or an empty string."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        good = parts.scheme == "https" and HOST.fullmatch(parts.netloc)
        return "" if good else "no address of the form https://host/path"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file in the site"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such anchor on that page"
    return ""


def _wrong_fetch(path: Path, address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme == "data" or address.startswith("#"):
        return ""
    if parts.scheme or parts.netloc:
        return "is fetched from elsewhere"
    exists = (path.parent / unquote(parts.path)).is_file()
    return "" if exists else "no such file in the site"


def _wrong_file(root: Path, path: Path) -> list[str]:
    """The problems of addresses that a style sheet or a picture fetches."""
    text = path.read_text(encoding="utf-8")
    wrong = [(address, _wrong_fetch(path, address)) for address in IN_CSS.findall(text)]
    return [f"{path.relative_to(root)}: {address}: {why}" for address, why in wrong if why]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
