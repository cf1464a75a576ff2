"""Adds the spec and the cases to every package, and the C++ programs to a wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INSTALLED = "fletching_generator/installed"  # INSTALLED in fletching_generator/installation.py

# Of tests/corpus: for fletching-validate, and for the examples of `validate --explain`.
_CASES = ("data.json", "hostile.json", "public.json")


class SpecAndPrograms(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # uses the clone
            return
        root = Path(self.root)
        # Unpacked sources, unlike a clone, have the spec inside.
        unpacked = (root / "PKG-INFO").is_file()
        spec = root / "spec" if unpacked else root.parent / "spec"
        corpus = root / "corpus" if unpacked else root.parent / "tests" / "corpus"
        files: dict[str, str] = build_data["force_include"]
        folder = "" if self.target_name == "sdist" else f"{_INSTALLED}/"
        files[str(spec)] = f"{folder}spec"
        for name in _CASES:
            files[str(corpus / name)] = f"{folder}corpus/{name}"
        if self.target_name == "sdist":
            return
        # Set by build-package: a folder, and the platform of its programs, such as linux_x86_64.
        programs = os.environ.get("FLETCHING_TOOLS_PROGRAMS")
        if programs:
            files[programs] = f"{_INSTALLED}/bin"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{os.environ['FLETCHING_TOOLS_PLATFORM']}"
