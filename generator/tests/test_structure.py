"""Tests that the generator's packages have no circular imports and use no private names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import fletching_generator
from fletching_generator.languages import find_languages

PACKAGE = Path(fletching_generator.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
    if "templates" not in path.parts
}
ON_TOP = {
    "cli",
    "commands",
    "errors",
    "files",
    "generate",
    "installation",
    "render",
    "spelling",
    "terminal",
}
SUBJECTS = {
    "async_stream",
    "core",
    "cuda_array_interface",
    "docs",
    "headers",
    "languages",
    "reading",
    "rules",
    "runtimes",
    "spec",
    "validation",
    "vendors",
}
MOST_LINES = 300


def imports(module: str) -> Iterator[tuple[str, str]]:
    """Yields the imports of a module from the package: module and name."""
    path = MODULES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in MODULES)
        if not isinstance(node, ast.ImportFrom):
            continue
        base = package[: len(package) - node.level + 1] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            if inner in MODULES:
                yield inner, ""
            elif source in MODULES:
                yield source, alias.name


def entries(folder: Path) -> set[str]:
    """Returns the entries of a folder, except folders that contain only a cache."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(folder).parts[0] for path in files}


def test_package_has_subject_folders_and_few_modules() -> None:
    assert entries(PACKAGE) == SUBJECTS | {f"{name}.py" for name in ON_TOP | {"__init__"}}


def test_languages_folder_has_no_list_of_languages() -> None:
    registry = MODULES["fletching_generator.languages"]
    assert entries(registry.parent) == {"__init__.py", *find_languages()}
    text = registry.read_text(encoding="utf-8")
    assert [name for name in find_languages() if f'"{name}"' in text] == []


def test_modules_have_no_import_cycle() -> None:
    graph = {module: {source for source, _ in imports(module)} for module in MODULES}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == set(MODULES)
    assert sum(map(len, graph.values())) > len(MODULES), "the graph has its edges"


def test_subjects_have_no_import_cycle() -> None:
    graph: dict[str, set[str]] = {subject: set() for subject in SUBJECTS}
    for module in MODULES:
        users = module.split(".")[1:2]
        sources = {part for source, _ in imports(module) for part in source.split(".")[1:2]}
        if users and users[0] in SUBJECTS:
            graph[users[0]] |= (sources & SUBJECTS) - {users[0]}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError
    assert set(order) == SUBJECTS
    assert graph["languages"] >= {"spec", "reading"}, "the graph has its edges"


@pytest.mark.parametrize("module", MODULES)
def test_module_is_short_and_uses_no_internals(module: str) -> None:
    lines = MODULES[module].read_text(encoding="utf-8").count("\n")
    assert lines <= MOST_LINES
    internal = [f"{source}.{name}" for source, name in imports(module) if name.startswith("_")]
    assert internal == []


def test_only_output_modules_depend_on_languages() -> None:
    makers = (
        "fletching_generator.docs",
        "fletching_generator.languages",
        "fletching_generator.vendors",
    )
    users = {
        module
        for module in MODULES
        for source, _ in imports(module)
        if source.startswith("fletching_generator.languages.") and not module.startswith(makers)
    }
    assert users == set()
