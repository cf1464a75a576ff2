"""The vendors' functions, and the functions that the kit's sources use."""

from __future__ import annotations

import re
from pathlib import Path

_ROW = re.compile(r'\{"(\w+)",[^}]*?offsetof\(Functions, (\w+)\)\}', re.DOTALL)
_SOURCES = ("cpp/producer",)
_NOT_SOURCES = ("runtimes", "tests", "kernels")


def table(root: Path, runtime: str) -> dict[str, str]:
    """The functions of a generated table, with the struct member of each."""
    path = root / "cpp" / "producer" / "runtimes" / f"{runtime}.hpp"
    rows = dict(_ROW.findall(path.read_text(encoding="utf-8")))
    if not rows:
        raise ValueError(f"{path} has no row of a table: its form has changed")
    return rows


def of_producer(root: Path) -> dict[str, str]:
    """The Vulkan functions outside the table that the reference producer loads."""
    text = (root / "cpp" / "producer" / "vulkan_root.hpp").read_text(encoding="utf-8")
    names = re.findall(r"\bX\((vk\w+)\)", text)
    return {name: name for name in [*names, "vkCreateInstance", "vkEnumerateInstanceVersion"]}


def called(root: Path, members: dict[str, str]) -> dict[str, list[str]]:
    """The functions that the kit uses as table members, with the files that use them."""
    found: dict[str, list[str]] = {}
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.?pp")):
            if set(path.relative_to(root / folder).parts) & set(_NOT_SOURCES):
                continue
            words = set(re.findall(r"(?:[.>]|::)(\w+)", path.read_text(encoding="utf-8")))
            for function, member in members.items():
                if member in words:
                    found.setdefault(function, []).append(str(path.relative_to(root)))
    return found
