"""Adds the spec to the source distribution and the wheels, and the C++ programs to a wheel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_INSTALLED = "fletching_generator/installed"  # INSTALLED in fletching_generator/installation.py


class SpecAndPrograms(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # uses the clone
            return
        root = Path(self.root)
        # Unpacked sources, unlike a clone, have the spec inside.
        spec = root / "spec" if (root / "PKG-INFO").is_file() else root.parent / "spec"
        files: dict[str, str] = build_data["force_include"]
        if self.target_name == "sdist":
            files[str(spec)] = "spec"
            return
        files[str(spec)] = f"{_INSTALLED}/spec"
        # Set by build-package: a folder, and the platform of its programs, such as linux_x86_64.
        programs = os.environ.get("FLETCHING_TOOLS_PROGRAMS")
        if programs:
            files[programs] = f"{_INSTALLED}/bin"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{os.environ['FLETCHING_TOOLS_PLATFORM']}"
