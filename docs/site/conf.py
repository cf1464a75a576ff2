"""The site that `make docs` builds from the repository's Markdown with Sphinx, MyST and Furo.

The pages stay plain Markdown for GitHub readers: this file has the sidebar's tree, and links to
files that are not pages go to the repository.
"""

from __future__ import annotations

import posixpath
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.matching import patfilter

ROOT = Path(__file__).resolve().parents[2]
PROJECT = yaml.safe_load((ROOT / "spec" / "project.yaml").read_text(encoding="utf-8"))
DEVICES = [
    device
    for device in yaml.safe_load((ROOT / "spec" / "devices.yaml").read_text("utf-8"))["devices"]
    if "unreleased" not in device
]
BLOB = f"https://{PROJECT['repository']}/blob/main"

project = PROJECT["name"]
release = PROJECT["version"]
html_title = project
extensions = [
    "breathe",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
    "sphinx_copybutton",
]
graphviz_output_format = "svg"
copybutton_exclude = ".linenos, .go"  # of an interactive session, copy what the reader types
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "**/README.md", "api/**.md"]
exclude_patterns = [
    "README.md",
    "api/*/static.files",
    "api/**/legal",
    "build",
    ".*",
    "**/.*",
    "**/node_modules",
    "**/target",
    "**/templates",
]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4  # as on GitHub

# The API reference. docs/site/build writes its pages into api/, and its sources into build/api.
API = ROOT / "build" / "api"
sys.path.insert(0, str(API / "python"))
breathe_projects = {"cpp": str(API / "cpp" / "xml")}
breathe_domain_by_extension = {"h": "c"}
autodoc_mock_imports = ["numpy", "typing_extensions"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
default_role = "code"  # of docstrings
suppress_warnings = [
    "duplicate_declaration.c",
    "duplicate_declaration.cpp",  # each header opens the namespace
    "ref.python",  # several classes have a property `type`
]

html_theme = "furo"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_search_scorer = str(ROOT / "docs" / "site" / "scorer.js")
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "source_repository": f"https://{PROJECT['repository']}",
    "source_branch": "main",
    "source_directory": "",
    "top_of_page_buttons": ["edit"],
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
GENERATED = re.compile(r"docs/(reference|measured)/|api/")  # pages without an edit button

# The sidebar: parent page, heading, child pages. A pattern adds the matching pages that are not
# listed by name.
SIDEBAR: dict[str, dict[str, list[str]]] = {
    "docs/index": {
        "Start": ["docs/tutorial", "docs/recipes", "docs/faq", "docs/troubleshooting"],
        "Guides": [
            "docs/ownership",
            "docs/synchronization",
            "docs/async",
            "docs/dlpack",
            "docs/c",
            "docs/validate",
            "docs/testing",
            "docs/migrating",
            "generator/README",
        ],
        "Languages": ["cpp/README", "bindings/*/README", "bindings/*/*/README"],
        "Reference": [
            "docs/reference/README",
            *(f"docs/reference/{interface}" for interface in PROJECT["interfaces"]),
            "docs/reference/devices",
            "docs/formats",
            "docs/reference/errata",
            "docs/reference/rules/README",
            "docs/glossary",
            "docs/reference/*",
        ],
        "API": ["api/README", "api/*/index"],
        "Measured": ["docs/measured/conformance", "docs/measured/*"],
        "Reports": ["docs/reports/README", "docs/reports/*"],
        "Releases": ["docs/versions", "docs/limits", "CHANGELOG", "SECURITY"],
        "Contributors": ["CONTRIBUTING", "CODE_OF_CONDUCT", "MAINTAINERS"],
    },
    # A level down, so that users, who do not open CONTRIBUTING, do not see them.
    "CONTRIBUTING": {
        "Guides": ["docs/adding-a-device", "docs/adding-a-language", "docs/layout-proofs"],
        "Tests and tools": [
            "cpp/*/README",
            "generator/*/README",
            "packages/README",
            "tests/**/README",
        ],
    },
    "api/cpp/index": {"Headers": ["api/cpp/*-h", "api/cpp/*-hpp"]},
    "api/python/index": {"Modules": ["api/python/*"]},
    "api/go/index": {"Packages": ["api/go/*"]},
    "docs/reference/devices": {
        "Device types": [f"docs/reference/devices/{device['name']}" for device in DEVICES]
    },
    "docs/reference/rules/README": {"Rules": ["docs/reference/rules/*"]},
}


TITLES = {"generator/README": "Check headers: fletching-tools"}


def add_sidebar(app: Sphinx, docname: str, source: list[str]) -> None:
    """Appends the trees of child pages to a page. Only the sidebar shows them."""
    there = sorted(app.env.found_docs - {docname})
    for caption, patterns in SIDEBAR.get(docname, {}).items():
        found = dict.fromkeys(page for pattern in patterns for page in patfilter(there, pattern))
        pages = [_entry(page) for page in found]
        tree = ["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]
        source[0] += "\n".join(tree)


def _entry(page: str) -> str:
    """An entry of a tree. The title of a package's page alone does not name its language."""
    match = re.fullmatch(r"bindings/(\w+)/(.+)/README", page)
    if match is None:
        return f"{TITLES[page]} </{page}>" if page in TITLES else f"/{page}"
    manifest = (ROOT / "bindings" / match[1] / "language.toml").read_text(encoding="utf-8")
    return f"{tomllib.loads(manifest)['title']}: {match[2]} </{page}>"


def draw_diagrams(_: Sphinx, __: str, source: list[str]) -> None:
    """Turns the Mermaid diagrams, which GitHub draws, into Graphviz ones, which need no script."""
    source[0] = re.sub(
        r"```mermaid\nstateDiagram-v2\n(.*?)```", _graphviz, source[0], flags=re.DOTALL
    )


def _graphviz(match: re.Match[str]) -> str:
    arrows = [
        f'{start} -> {end} [label=" {label.replace(", ", "&#10; ")}"];'
        for start, end, label in re.findall(r"^    (\w+) --> (\w+) : (.*)$", match[1], re.MULTILINE)
    ]
    style = "node [shape=box, style=rounded]; edge [fontsize=10];"
    return "\n".join(["```{graphviz}", "digraph {", style, *arrows, "}", "```"])


class PlainLinks(SphinxTransform):
    """Turns links that MyST cannot resolve into plain links, which check_site.py checks.

    Files and folders that are not pages are in the repository; anchors may be written in HTML.
    """

    default_priority = 1

    def apply(self, **_: Any) -> None:
        for kind in (addnodes.download_reference, addnodes.pending_xref):
            for link in list(self.document.findall(kind)):
                address = self.address(link)
                if address:
                    link.replace_self(nodes.reference("", "", *link.children, refuri=address))
        for link in self.document.findall(nodes.reference):
            if self.html_anchor(self.env.docname, link.get("refuri", "").removeprefix("#")):
                link["id_link"] = False  # stops MyST's search

    def address(self, link: nodes.Element) -> str | None:
        here, target = self.env.docname, link["reftarget"]
        if link.get("refdomain") == "doc":
            if target not in self.env.found_docs:
                return repository_address("", f"{target}.md")
            return self.html_anchor(target, link.get("reftargetid"))
        if here == "api/README" and ".html" in target:
            return str(target)  # a page of another generator, which docs/site/build copies
        return self.html_anchor(here, target) or repository_address(here, target)

    def html_anchor(self, page: str, anchor: str | None) -> str | None:
        if anchor not in html_anchors(str(self.env.doc2path(page))):
            return None
        return f"{self.app.builder.get_relative_uri(self.env.docname, page)}#{anchor}"


@cache
def html_anchors(file: str) -> set[str]:
    """The anchors that a page defines as `<a id="..."></a>`."""
    return set(re.findall(r'<a id="([^"]+)"></a>', Path(file).read_text(encoding="utf-8")))


def repository_address(docname: str, target: str) -> str | None:
    """The repository path of this file or folder, or None."""
    file, fragment = urldefrag(target)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(docname), file))
    if not file or path.startswith("..") or not (ROOT / path).exists():
        return None
    return f"{BLOB}/{path}" + (f"#{fragment}" if fragment else "")


def complete_page(
    _: Sphinx, page: str, __: str, context: dict[str, Any], ___: nodes.document | None
) -> None:
    """Gives the headings of the sidebar their level, and generated pages no button to edit them."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    if GENERATED.match(page):
        context["theme_top_of_page_buttons"] = []


def escape_docstring(
    _: Sphinx, __: str, ___: str, ____: object, _____: object, lines: list[str]
) -> None:
    """Marks names that end with an underscore as code: they would be links."""
    lines[:] = [re.sub(r"(?<![`\w])(\w+_)(?![`\w])", r"``\1``", line) for line in lines]


# Names and roles for screen readers that the templates of Furo and Sphinx lack.
NAMES = {
    '<aside class="sidebar-drawer"': '<aside aria-label="Site" class="sidebar-drawer"',
    '<aside class="toc-drawer': '<aside aria-label="Page" class="toc-drawer',
    '<th class="head"><p></p></th>': "<td></td>",
    'type="image/svg+xml" class="graphviz">': (
        'type="image/svg+xml" class="graphviz" role="img" aria-label="Diagram of the table below">'
    ),
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}


def complete_files(app: Sphinx, _: Exception | None) -> None:
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for old, new in NAMES.items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_sidebar)
    app.connect("html-page-context", complete_page, priority=900)
    app.connect("build-finished", complete_files)
    app.connect("source-read", draw_diagrams)
    app.connect("autodoc-process-docstring", escape_docstring)
    app.add_transform(PlainLinks)
