"""Compares one runtime of the spec with the vendor's header and with the installed library."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from fletching_generator.render import render_module
from fletching_generator.runtimes.model import Runtime
from fletching_generator.spec.model import Spec
from fletching_generator.vendors import vendor_checks

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]

# The libraries installed for the tests; for others, the reason why they are not installed.
INSTALLED = {
    "hip": "libamdhip64.so.5",
    "opencl": "libOpenCL.so.1",
    "vulkan": "libvulkan.so.1",
}
NOT_INSTALLED = {"cuda": "the library is part of an NVIDIA driver"}
# Functions that a header declares and its library lacks.
LACKED = {"hip": {"hipEventRecord_spt"}}
# Runtimes without a C header.
NO_HEADER = {
    "sycl": "a C++ library, reached through a waiter; no symbol of it is in the table",
    "metal": "Objective-C, on macOS only, reached through a waiter; no symbol is in the table",
}

_PACKAGES = "run tools/setup, which installs the headers"
_FLAGS = {".cpp": ["g++", "-std=c++20", "-fmax-errors=0"], ".c": ["gcc", "-std=c11"]}
# A 32-bit target, where a handle64 is not a pointer. No C library for it is installed; the headers
# need only size_t from these files.
_CLANG_32 = ["clang-19", "--target=i686-linux-gnu", "-ffreestanding", "-idirafter", "/usr/include"]
_STAND_INS = ("stdlib.h", "string.h")

_ASSERTION = re.compile(r"static assertion failed[^:]*: \"?(?P<subject>[\w.]+): ")
_UNKNOWN = re.compile(r"'(?P<subject>\w+)'[^']*(?:was not declared|undeclared)|identifier '(\w+)'")


def lacked(runtime: Runtime) -> set[str]:
    """The symbols that the installed library may lack."""
    newer = {function.symbol for function in runtime.functions if function.newer}
    return LACKED.get(runtime.name, set()) | newer


class CannotRunError(Exception):
    """The message names the missing part and the fix."""


def include_folders() -> list[Path]:
    """The folders of headers in the pinned wheels. Compilers find Debian's headers themselves."""
    override = os.environ.get("FLETCHING_CUDA_INCLUDE")
    if override:
        return [Path(override)]
    return sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/include"))


def texts(spec: Spec) -> dict[str, str]:
    """The generated checks of the spec, by file name."""
    rendered = render_module(vendor_checks, spec)
    return {Path(path).name: text for path, text in rendered.items()}


def complaints(runtime: Runtime, files: dict[str, str], per_thread: bool = False) -> list[str]:
    """The compiler's complaints about these checks of the runtime."""
    assert runtime.header is not None
    define = list(runtime.header.define)
    if per_thread:
        define += ["FLETCHING_PER_THREAD", str(runtime.header.per_thread)]
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for stand_in in _STAND_INS:
            (Path(scratch) / "c" / stand_in).parent.mkdir(exist_ok=True)
            (Path(scratch) / "c" / stand_in).write_text("#include <stddef.h>\n", encoding="utf-8")
        for name, text in files.items():
            path = Path(scratch) / name
            path.write_text(text, encoding="utf-8")
            found += _compile(_FLAGS[path.suffix], define, path)
            if path.suffix == ".c":
                found += _compile([*_CLANG_32, f"-I{scratch}/c"], define, path)
    return found


def of_runtime(runtime: Runtime, everything: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in everything.items() if name.startswith(f"{runtime.name}_")}


def _compile(compiler: list[str], define: list[str], path: Path) -> list[str]:
    command = [*compiler, "-fsyntax-only", f"-I{FOLDER}", *(f"-D{name}" for name in define)]
    for folder in include_folders():
        command += ["-isystem", str(folder)]
    environment = {**os.environ, "LC_ALL": "C"}
    result = subprocess.run(
        [*command, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    lines = [line for line in result.stderr.splitlines() if "error: " in line]
    if any("No such file" in line or "file not found" in line for line in lines):
        raise CannotRunError(f"{lines[0]}; {_PACKAGES}")
    if result.returncode != 0 and not lines:
        raise CannotRunError(f"{compiler[0]}: {result.stderr.strip()}")
    return lines


def subjects(lines: list[str]) -> set[str]:
    """The names that the complaints are about."""
    found = set()
    for line in lines:
        match = _ASSERTION.search(line) or _UNKNOWN.search(line)
        if match:  # follow-up errors name no subject
            found.add(next(filter(None, match.groups())))
    return found


def missing_symbols(runtime: Runtime, library: str) -> list[str]:
    """The symbols of the table that the library does not export."""
    try:
        loaded = ctypes.CDLL(library)
    except OSError as error:
        raise CannotRunError(f"{library}: {error}; run tools/setup, which installs it") from None
    symbols = [f.symbol for f in runtime.functions] + [
        f.per_thread for f in runtime.functions if f.per_thread
    ]
    return [symbol for symbol in symbols if not hasattr(loaded, symbol)]


def windows_convention(runtime: Runtime) -> str:
    """Returns the text before a function name in the header on Windows, or an empty string."""
    assert runtime.header is not None
    macro = runtime.convention.macro if runtime.convention else ""
    source = f"#include <{runtime.header.include}>\nFLETCHING_ENDS {macro}\n"
    command = ["gcc", "-E", "-P", "-D_WIN32", *(f"-D{name}" for name in runtime.header.define)]
    for folder in include_folders():
        command += ["-isystem", str(folder)]
    text = subprocess.run(
        [*command, "-"], input=source, capture_output=True, text=True, check=True
    ).stdout
    before, after = text.split("FLETCHING_ENDS")
    if runtime.convention is None:
        return "stdcall" if "__stdcall" in before else ""
    return after.strip().removeprefix("__")
