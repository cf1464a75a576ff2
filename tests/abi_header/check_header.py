"""Compiles fletching/abi.h and fletching/dlpack.h under every standard and with other headers.

A case is a few include lines. Valid cases compile, with all warnings as errors, and declare the
same as upstream. After a wrong copy of an interface, the header must stop the compilation with its
own message. Prints the matrix. Exit codes: 0 all as expected, 1 unexpected results, 2 could not
run.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
OURS = "#include <fletching/abi.h>\n"
UPSTREAM = "#include <arrow/c/abi.h>\n"
FOREIGN = '#include "foreign.h"\n'
OUR_DLPACK = "#include <fletching/dlpack.h>\n"
UPSTREAM_DLPACK = "#include <dlpack/dlpack.h>\n"
FOREIGN_DLPACK = '#include "foreign_dlpack.h"\n'

# Newer names first: a compiler that does not know one gets the next.
STANDARDS = {
    "c": (("c99",), ("c11",), ("c17",), ("c23", "c2x")),
    "c++": (("c++11",), ("c++14",), ("c++17",), ("c++20",), ("c++23", "c++2b")),
}
# The oldest and the newest standard of each language, as suffixes of compiler labels.
SAMPLE = tuple(
    f" {name}" for names in STANDARDS.values() for s in (names[0], names[-1]) for name in s
)
# Targets for which the assertions choose other numbers than on the host, or the compiler differs.
TARGETS = (
    "i686-linux-gnu",
    "i686-pc-windows-msvc",
    "x86_64-pc-windows-msvc",
    "armv7-linux-gnueabihf",
    "aarch64-linux-gnu",
    "riscv32-unknown-elf",
    "s390x-linux-gnu",
    "wasm32-unknown-unknown",
)


@dataclass(frozen=True)
class Compiler:
    label: str  # "clang-19 c++11", "clang-19 s390x-linux-gnu c11"
    language: str  # "c" or "c++"
    command: tuple[str, ...]  # ("clang-19", "-x", "c++", "-std=c++11", ...)

    @property
    def refuses_in_words(self) -> bool:
        """Before C11 an assertion has no text, only the name of a typedef."""
        return "-std=c99" not in self.command


@dataclass(frozen=True)
class Case:
    name: str
    source: str
    defect: str = ""  # macro that enables a defect of foreign.h
    # Subject of the error, such as "ArrowDeviceArray.device_id"; empty if the case must compile.
    about: str = ""


# The header's error about a dlpack.h of another version.
TOO_OLD = "not of version 1.2 to 1.x"


def _wrong_dlpack(defect: str, about: str) -> Case:
    name = defect.removeprefix("FOREIGN_").lower().replace("_", " ")
    return Case(f"DLPack, {name}", FOREIGN_DLPACK + OUR_DLPACK, defect, about)


GOOD = (
    Case("alone, twice", OURS + OURS),
    Case("before upstream's", OURS + UPSTREAM),
    Case("after upstream's", UPSTREAM + OURS),
    Case("after a partial copy", FOREIGN + OURS),
    Case(
        "before a copy that guards",
        OURS + "#ifndef ARROW_C_DATA_INTERFACE\n" + FOREIGN + "#endif\n",
    ),
    Case("DLPack alone, twice, with ours", OURS + OUR_DLPACK + OUR_DLPACK),
    Case("DLPack before upstream's", OUR_DLPACK + UPSTREAM_DLPACK),
    Case("DLPack after upstream's", UPSTREAM_DLPACK + OUR_DLPACK + OURS),
    Case("DLPack after a copy of 1.2", FOREIGN_DLPACK + OUR_DLPACK),
)
WRONG = (
    Case("swapped fields", FOREIGN + OURS, "FOREIGN_SWAPPED", "ArrowDeviceArray.device_id"),
    Case("a field elsewhere", FOREIGN + OURS, "FOREIGN_DROPPED", "ArrowArray.null_count"),
    Case("a longer array", FOREIGN + OURS, "FOREIGN_LONGER", "ArrowDeviceArray.reserved"),
    Case(
        "narrow field in padding",
        FOREIGN + OURS,
        "FOREIGN_NARROW_FIELD",
        "ArrowDeviceArray.device_type",
    ),
    Case(
        "narrow typedef in padding",
        FOREIGN + OURS,
        "FOREIGN_NARROW_TYPEDEF",
        "ArrowDeviceArray.device_type",
    ),
    Case(
        "one callback more",
        FOREIGN + OURS,
        "FOREIGN_EXTRA_CALLBACK",
        "ArrowAsyncProducer.additional_metadata",
    ),
    Case("a wrong device number", FOREIGN + OURS, "FOREIGN_WRONG_DEVICE", "ARROW_DEVICE_CPU"),
    Case("a wrong flag", FOREIGN + OURS, "FOREIGN_WRONG_FLAG", "ARROW_FLAG_NULLABLE"),
    _wrong_dlpack("FOREIGN_SWAPPED_DL_DEVICE", "DLDevice.device_type"),
    _wrong_dlpack("FOREIGN_NARROW_LANES", "DLDataType.lanes"),
    _wrong_dlpack("FOREIGN_LATE_FLAGS", "DLManagedTensorVersioned.flags"),
    _wrong_dlpack("FOREIGN_WRONG_DL_DEVICE", "kDLVulkan"),
    _wrong_dlpack("FOREIGN_WRONG_CODE", "kDLInt"),
    _wrong_dlpack("FOREIGN_WRONG_DLPACK_FLAG", "DLPACK_FLAG_BITMASK_READ_ONLY"),
    _wrong_dlpack("FOREIGN_OLD_DLPACK", TOO_OLD),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True, help="folder with fletching/")
    parser.add_argument("--upstream", required=True, help="folder with upstream's headers")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="of the standards the oldest and the newest only",
    )
    options = parser.parse_args()
    missing = [name for name in ("gcc", "clang-19") if shutil.which(name) is None]
    if missing:
        print(
            f"{' and '.join(missing)}: not found; run 'make setup', which installs it",
            file=sys.stderr,
        )
        return 2

    includes = ["-I", options.include, "-I", options.upstream, "-I", str(HERE)]
    hosts = [c for name in ("gcc", "clang-19") for c in _compilers(name, includes)]
    targets = [c for target in TARGETS for c in _cross_compilers(target, includes)]
    sample = [c for c in hosts if c.label.endswith(SAMPLE)] if options.sample else hosts
    failures = _report_matrix(sample, (*GOOD, *WRONG))
    failures += _report_matrix(targets, (GOOD[0], WRONG[0], GOOD[5], WRONG[8], WRONG[11]))
    failures += [
        f for c in hosts if c.label.endswith((" c11", " c++17")) for f in _macro_failures(c)
    ]
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"abi.h and dlpack.h: {len(failures)} failures")
    return 1 if failures else 0


def _compilers(name: str, includes: list[str]) -> list[Compiler]:
    found = []
    for language, standards in STANDARDS.items():
        for names in standards:
            standard = next((s for s in names if _knows(name, language, s)), None)
            if standard is None:
                raise SystemExit(f"{name} knows none of {', '.join(names)}; run 'make setup'")
            command = (name, "-x", language, f"-std={standard}", *FLAGS, *includes)
            found.append(Compiler(f"{name} {standard}", language, command))
    return found


def _cross_compilers(target: str, includes: list[str]) -> list[Compiler]:
    """Clang for a foreign target without system headers: the compiler's own headers suffice."""
    flags = (f"--target={target}", "-ffreestanding", "-nostdlibinc")
    return [
        Compiler(
            f"{target} {standard}",
            language,
            ("clang-19", "-x", language, f"-std={standard}", *flags, *FLAGS, *includes),
        )
        for language, standard in (("c", "c99"), ("c", "c11"), ("c++", "c++17"))
    ]


def _knows(name: str, language: str, standard: str) -> bool:
    compiler = Compiler(name, language, (name, "-x", language, f"-std={standard}"))
    return _compile(compiler, "").returncode == 0


def _run(compiler: Compiler, source: str, *extra: str) -> subprocess.CompletedProcess[str]:
    command = [*compiler.command, *extra, "-"]
    return subprocess.run(command, check=False, input=source, capture_output=True, text=True)


def _compile(compiler: Compiler, source: str, *extra: str) -> subprocess.CompletedProcess[str]:
    return _run(compiler, source, "-fsyntax-only", *extra)


# --- The matrix


def _report_matrix(compilers: list[Compiler], cases: tuple[Case, ...]) -> list[str]:
    """Prints one row per compiler and one column per case; returns the failures."""
    jobs = [(compiler, case) for compiler in compilers for case in cases]
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(lambda job: _problem(*job), jobs))
    problems = dict(zip(jobs, found, strict=True))
    for number, case in enumerate(cases, 1):
        print(f"{number:3} {case.name}: {'has to be refused' if case.about else 'has to compile'}")
    print(" " * 28 + "".join(f"{number:>5}" for number in range(1, len(cases) + 1)))
    for compiler in compilers:
        marks = [f"{'FAIL' if problems[compiler, case] else 'ok':>5}" for case in cases]
        print(f"{compiler.label:28}" + "".join(marks))
    return [f"{c.label}, {case.name}: {text}" for (c, case), text in problems.items() if text]


def _problem(compiler: Compiler, case: Case) -> str:
    defect = [f"-D{case.defect}"] if case.defect else []
    result = _compile(compiler, case.source, *defect)
    if not case.about:
        return "" if result.returncode == 0 else f"does not compile:\n{result.stderr}"
    if result.returncode == 0:
        return f"compiles, and should be refused for {case.about}"
    if not _names(result.stderr, case.about, compiler.refuses_in_words):
        return f"is refused, but not for {case.about}:\n{result.stderr}"
    # The copy must compile alone; otherwise the error did not come from Fletching's header.
    others = case.source.replace(OURS, "").replace(OUR_DLPACK, "")
    alone = _compile(compiler, others, *defect)
    return "" if alone.returncode == 0 else f"the copy itself does not compile:\n{alone.stderr}"


def _names(errors: str, about: str, in_words: bool) -> bool:
    if about == TOO_OLD:
        return about in errors
    if in_words:
        return re.search(rf"{re.escape(about)} (is not where|has another)", errors) is not None
    return re.search(rf"fletching_assert_(\w+_)?{about.replace('.', '_')}\b", errors) is not None


# --- Macros


def _macro_failures(compiler: Compiler) -> list[str]:
    """Alone and after a partial copy, Fletching's headers define upstream's macros and values."""
    expected = _macros(compiler, UPSTREAM + UPSTREAM_DLPACK)
    failures = [] if expected else [f"{compiler.label}: no macros in upstream's headers"]
    for case in (GOOD[5], Case("partial copies", FOREIGN + OURS + UPSTREAM_DLPACK + OUR_DLPACK)):
        seen = _macros(compiler, case.source)
        failures += [
            f"{compiler.label}, {case.name}: {name} is {seen.get(name, 'missing')}, not {value}"
            for name, value in expected.items()
            if seen.get(name) != value
        ]
    print(f"{compiler.label}: {len(expected)} macros of upstream's compared")
    return failures


def _macros(compiler: Compiler, source: str) -> dict[str, str]:
    """The macros that begin with ARROW_ or DLPACK_, with their expansions."""
    result = _run(compiler, source, "-E", "-dM")
    found = re.findall(r"^#define ((?:ARROW|DLPACK)_\w+) ?(.*)$", result.stdout, re.MULTILINE)
    return {name: _value(text) for name, text in found}


def _value(text: str) -> str:
    """Upstream shifts a 1 where Fletching's header has the number."""
    shifted = re.fullmatch(r"\(1UL << (\d+)UL\)", text)
    return f"{1 << int(shifted[1])}UL" if shifted else text


if __name__ == "__main__":
    sys.exit(main())
