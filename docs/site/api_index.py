"""Writes api/README.md, the first page of the API reference: the languages, and an index of the
symbols that several of them have.

    python docs/site/api_index.py api BUILD

`api` has a folder for each home, which its build-api wrote; BUILD/cpp/xml is doxygen's XML.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
Symbol = tuple[str, str]  # name, address from the folder of the home


def main(arguments: list[str]) -> int:
    api, build = map(Path, arguments)
    homes = sorted(path.name for path in api.iterdir() if path.is_dir())
    index: dict[str, dict[str, Symbol]] = defaultdict(dict)
    for home in homes:
        for name, address in symbols(api / home, build / home):
            if len(name) > 2 and not name.startswith("_"):
                index[_key(name)].setdefault(home, (name, f"{home}/{address}"))
    lines = [
        "# API reference",
        "",
        *(f"- [{_title(home)}]({_front(api / home)})" for home in homes),
    ]
    lines += ["", "## Symbols", "", "The names that at least two languages have.", ""]
    lines += [f"| {' | '.join(map(_title, homes))} |", "|---" * len(homes) + "|"]
    for key in sorted(index):
        if len(index[key]) > 1:
            lines.append(f"| {' | '.join(_cell(index[key].get(home)) for home in homes)} |")
    (api / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def symbols(folder: Path, build: Path) -> Iterator[Symbol]:
    """The symbols of a home, by the tool that wrote its pages."""
    if (build / "xml").is_dir():
        return doxygen(folder, build / "xml")
    if (build / "fletching" / "__init__.py").is_file():
        return autodoc(build / "fletching")
    if (folder / "type-search-index.js").is_file():
        return javadoc(folder)
    if (folder / "crates.js").is_file():
        return rustdoc(folder)
    return headings(folder)


def _title(home: str) -> str:
    files = [ROOT / home / "language.toml", ROOT / "bindings" / home / "language.toml"]
    text = next(file for file in files if file.is_file()).read_text(encoding="utf-8")
    title: str = tomllib.loads(text)["title"]
    return title


def _front(folder: Path) -> str:
    pages = ("index.md", "index.html", "fletching/index.html")
    return f"{folder.name}/{next(page for page in pages if (folder / page).is_file())}"


def _key(name: str) -> str:
    """The same for DeviceArrayStream::takeChild, take_child and TakeChild."""
    return re.sub(r"^Fletching|\W|_", "", name.rsplit("::", 1)[-1].rsplit(".", 1)[-1]).lower()


def _cell(symbol: Symbol | None) -> str:
    return f"[`{symbol[0]}`]({symbol[1]})" if symbol else ""


def doxygen(folder: Path, xml: Path) -> Iterator[Symbol]:
    """Classes, and functions outside of classes, with the page of their header."""
    for path in sorted(xml.glob("*.xml")):
        root = ElementTree.parse(path).getroot()
        for each in [*root.iter("compounddef"), *root.iter("memberdef")]:
            place, kind = each.find("location"), each.get("kind")
            name = each.findtext("compoundname") or each.findtext("name") or ""
            in_class = root.find("compounddef[@kind='class']") is not None
            known = kind in ("class", "struct") or (
                kind in ("function", "typedef") and not in_class
            )
            page = (
                f"{Path(place.get('file', '')).name.replace('.', '-')}.md"
                if place is not None
                else ""
            )
            if known and "<" not in name and (folder / page).is_file():
                yield name.removeprefix("fletching::"), page


def headings(folder: Path) -> Iterator[Symbol]:
    """The headings in code of Markdown pages."""
    for path in sorted(folder.glob("*.md"), reverse=True):  # fletching before abi
        for name in re.findall(r"^## `([\w.]+)`$", path.read_text("utf-8"), re.MULTILINE):
            anchor = name.lower().replace(".", "")
            yield name, f"{path.name}#{anchor}"


def javadoc(folder: Path) -> Iterator[Symbol]:
    modules = {each["l"]: each["m"] for each in _javadoc(folder, "package") if "m" in each}
    for kind in ("type", "member"):
        for each in _javadoc(folder, kind):
            if "p" in each:
                place = f"{modules[each['p']]}/{each['p'].replace('.', '/')}"
                name = each["l"].split("(")[0]
                page = f"{place}/{each.get('c', each['l'])}.html"
                yield (f"{each['c']}.{name}" if "c" in each else name), page


def _javadoc(folder: Path, kind: str) -> list[dict[str, str]]:
    text = (folder / f"{kind}-search-index.js").read_text(encoding="utf-8")
    found: list[dict[str, str]] = json.loads(text[text.index("[") : text.rindex("]") + 1])
    return found


def autodoc(package: Path) -> Iterator[Symbol]:
    text = (package / "__init__.py").read_text(encoding="utf-8")
    listed = re.search(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r'"(\w+)"', listed[1] if listed else "")
    yield from ((name, f"index.html#fletching.{name}") for name in names)
    owner = ""
    core = (package / "_core.py").read_text(encoding="utf-8")
    for kind, name in re.findall(r"^(class |    def )(\w+)", core, re.MULTILINE):
        if kind == "class ":
            owner = name
        elif owner in names and not name.startswith("_"):
            yield f"{owner}.{name}", f"index.html#fletching.{owner}.{name}"


def rustdoc(folder: Path) -> Iterator[Symbol]:
    for crate in ("fletching", "fletching_abi"):
        text = (folder / crate / "all.html").read_text(encoding="utf-8")
        found = re.findall(r'<a href="([\w./]+)">([\w:]+)</a>', text)
        yield from ((name, f"{crate}/{page}") for page, name in found)
        for page, name in found:
            page_text = (folder / crate / page).read_text(encoding="utf-8")
            for method in re.findall(r'id="method\.(\w+)" class="method"', page_text):
                yield f"{name}::{method}", f"{crate}/{page}#method.{method}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
