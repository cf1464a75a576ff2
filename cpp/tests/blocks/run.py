"""Compiles the code blocks of the pages in $BLOCKS, and runs the complete programs.

A block with an #include is compiled as a separate file. All others go into one file, after
context.hpp or context.h, which declare what the pages assume: a block that defines a function is
used unchanged, any other becomes the body of a function.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BLOCKS = Path(os.environ["BLOCKS"])
COMPILERS = {
    ".c": ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror"],
    ".cpp": ["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror"],
}
_FUNCTION = re.compile(r"^(?!if|for|while|switch)\w.*\) (noexcept )?\{", re.MULTILINE)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def core() -> tuple[str | Path, ...]:
    """Returns the linker arguments for the core, which is compiled once."""
    built = BLOCKS / "core.o"
    run("cc", "-std=c11", f"-I{ROOT}/cpp/include", "-c", f"{ROOT}/cpp/core/core.c", "-o", built)
    return (built, "-pthread", "-ldl")


def compile_alone(path: Path) -> None:
    command = [*COMPILERS[path.suffix], f"-I{ROOT}/cpp/include", str(path)]
    if not re.search(r"^int main\(", path.read_text("utf-8"), re.MULTILINE):
        run(*command, "-fsyntax-only")
        return
    run(*command, *core(), "-o", path.with_suffix(".program"))
    printed = run(path.with_suffix(".program"))
    output = path.with_suffix(".output")
    if output.is_file() and printed != output.read_text("utf-8"):
        sys.exit(f"{path.name}: wrong output: expected\n{output.read_text('utf-8')}got\n{printed}")


def in_one_file(suffix: str, paths: list[Path]) -> Iterator[str]:
    yield f'#include "context.{"h" if suffix == ".c" else "hpp"}"'
    for path in paths:
        name = re.sub(r"\W", "_", path.stem)
        opened, closed = f"STATUS {name}(void) {{", "return OK; }"
        if _FUNCTION.search(path.read_text("utf-8")):
            opened, closed = (f"namespace {name} {{", "}") if suffix == ".cpp" else ("", "")
        yield from (opened, f'#include "{path}"', closed)


def compile_together(suffix: str, paths: list[Path]) -> None:
    source = BLOCKS / f"together{suffix}"
    source.write_text("\n".join(in_one_file(suffix, paths)) + "\n", encoding="utf-8")
    unused = ["-Wno-unused", "-Wno-missing-field-initializers"]
    run(*COMPILERS[suffix], *unused, f"-I{ROOT}/cpp/include", f"-I{HERE}", source, "-fsyntax-only")


def build_project(path: Path) -> None:
    """Builds a user's CMakeLists.txt with a main.cpp.

    find_package finds the installed headers, FetchContent the repository.
    """
    installed, project = BLOCKS / "installed", BLOCKS / path.stem
    options = ["-DFLETCHING_BUILD_TESTS=OFF", "-DFLETCHING_BUILD_SHARED=OFF"]
    run("cmake", "-S", ROOT, "-B", BLOCKS / "package", *options)
    run("cmake", "--build", BLOCKS / "package")
    run("cmake", "--install", BLOCKS / "package", "--prefix", installed)
    project.mkdir()
    start = "cmake_minimum_required(VERSION 3.16)\nproject(user LANGUAGES CXX)\n"
    (project / "CMakeLists.txt").write_text(start + path.read_text("utf-8"), encoding="utf-8")
    shutil.copy(ROOT / "cpp" / "examples" / "record_batch.cpp", project / "main.cpp")
    found = [f"-DCMAKE_PREFIX_PATH={installed}", f"-DFETCHCONTENT_SOURCE_DIR_FLETCHING={ROOT}"]
    run("cmake", "-S", project, "-B", project / "build", *found)
    run("cmake", "--build", project / "build")


def main() -> None:
    for path in sorted(BLOCKS.glob("*.cmake")):
        build_project(path)
    for suffix in COMPILERS:
        blocks = sorted(BLOCKS.glob(f"*{suffix}"))
        files = [path for path in blocks if "#include" in path.read_text("utf-8")]
        for path in files:
            compile_alone(path)
        compile_together(suffix, [path for path in blocks if path not in files])


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}: exit code {error.returncode}")
