"""Tests that the modules of the Rust crate have no circular dependencies."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "bindings/rust/fletching/src"


def expand(use: re.Match[str]) -> str:
    """Expands `use a::{b, c::{d, e}};` to `use a::b,a::c::d,a::c::e;`."""
    tree = re.sub(r"\s+as\s+\w+|\s", "", use[1])
    while "{" in tree:
        tree = re.sub(
            r"([\w:]*){([^{}]*)}",
            lambda group: ",".join(group[1] + item for item in group[2].split(",") if item),
            tree,
        )
    return f"use {tree};"


def read(path: Path) -> tuple[str, str]:
    """Returns the name of a module, and its code without comments and strings."""
    parts = path.relative_to(SOURCES).with_suffix("").parts
    code = re.sub(r"""//.*|'"'|"(?:\\[\s\S]|[^"\\])*\"""", "", path.read_text(encoding="utf-8"))
    name = "::".join(["crate", *(part for part in parts if part not in ("lib", "mod"))])
    return name, re.sub(r"\buse ([^;]+);", expand, code)


MODULES = dict(map(read, SOURCES.rglob("*.rs")))


def absolute(module: str, path: str) -> str:
    while path.startswith("super::"):
        module, path = module.rpartition("::")[0], path.removeprefix("super::")
    path = path.removeprefix("self::")
    return path if path.startswith("crate::") else f"{module}::{path}"


def uses(module: str) -> set[str]:
    """Returns the modules whose items a module uses. A `pub use` does not count."""
    found = set()
    for path in re.findall(r"(?:\w+::)+[\w*]+", re.sub(r"\bpub use [^;]+;", "", MODULES[module])):
        source = absolute(module, path)
        while source not in MODULES:
            source = REEXPORTS.get(source, source.rpartition("::")[0])
        found.add(source)
    return found - {module, "crate"}


REEXPORTS = {
    f"{module}::{path.rpartition('::')[2]}": absolute(module, path)
    for module, code in MODULES.items()
    for tree in re.findall(r"\bpub use ([^;]+);", code)
    for path in tree.split(",")
    if "::" in path
}


def test_rust_modules_have_no_import_cycle() -> None:
    graph = {module: uses(module) for module in MODULES}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == set(MODULES)
    waiter = {"crate::error", "crate::errno", "crate::runtime", "crate::c_core"}
    assert graph["crate::runtime::waiter"] == waiter, "the graph has its edges"
