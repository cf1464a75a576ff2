"""What is tested, leg by leg: plain data for suite.py. Commands run in bash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    title: str  # "unit tests"
    command: str  # "cargo test"
    folder: str = "."  # where it runs
    environment: Mapping[str, str] = field(default_factory=dict)
    needed: bool = False  # without it the rest of the leg makes no sense
    only_all: bool = False  # too long for `make test`
    ctest: str = ""  # the build folder whose ctest it runs


def _python(folder: str, tests: str = "") -> tuple[Step, ...]:
    """Tests, linter, formatter and types of one folder of Python."""
    up = "../" * (folder.count("/") + 1)
    bin_ = f"{up}.venv/bin"
    return (
        Step(f"pytest in {folder}", f"{bin_}/pytest -q -rs {tests}", folder),
        Step(f"ruff in {folder}", f"{bin_}/ruff check . && {bin_}/ruff format --check .", folder),
        Step(f"mypy in {folder}", f"{bin_}/mypy", folder),
    )


_BIN = "../../.venv/bin"

_RUST = {"CARGO_TARGET_DIR": "../../build/rust", "LIBCLANG_PATH": "/usr/lib/llvm-19/lib"}
_CARGO = "--locked --workspace --all-targets"

_GO = {"GOFLAGS": "-p=2", "CGO_ENABLED": "1"}
# The tests that compare with upstream's headers need to know where the pinned ones are.
_GO_INCLUDE = 'CGO_CFLAGS="-I$PWD/../../.venv/upstream"'
_GO_UPSTREAM = "-tags fletching_upstream ./..."
_GO_FOLDERS = ("bindings/go", "bindings/go/roundtrip")
_GO_TARGETS = "386 arm mips mipsle arm64 s390x riscv64"

_OURS = "^(?!.*/[.]venv/)"  # what is compiled, but not the sources of peers
_SOURCES = "git ls-files '*.c' '*.h' '*.cpp' '*.hpp'"
# A header without fletching/version.h would leave the name of its macro as that of the namespace.
_HEADER = "c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -I. -xc++"
_FORMATTED = f"{_SOURCES} | grep -v templates/"

LEGS: dict[str, tuple[Step, ...]] = {
    "spec": (
        Step("build", "tools/build extract"),
        Step("spec is sound", ".venv/bin/fletching check-spec"),
        Step("generated files agree", ".venv/bin/fletching generate --check"),
        *_python("generator", "-n 2 tests"),
        *_python("tests/published"),
        Step(
            "tests of fletching-extract",
            "ctest --test-dir build/extract --output-on-failure",
            ctest="build/extract",
        ),
        Step(
            "tools",
            "../.venv/bin/ruff check . && ../.venv/bin/mypy --strict *.py && "
            "../.venv/bin/python -m doctest skipped.py",
            "tools",
        ),
        Step(
            "tools of the targets",
            f"{_BIN}/ruff check . && {_BIN}/mypy --strict targets.py",
            "tests/targets",
        ),
    ),
    "cpp": (
        Step("build", "tools/build cpp", needed=True),
        Step("tests against the oracle", "build/cmake/bin/fletching_abi_test --gtest_brief=1"),
        Step("all tests", "ctest --preset default", ctest="build/cmake"),
        *_python("tests/peers/dlpack"),
        Step("clang-format", f"{_FORMATTED} | xargs .venv/bin/clang-format --dry-run --Werror"),
        Step(
            "address and undefined-behavior sanitizers",
            "cmake --preset asan && cmake --build --preset asan -j2 && ctest --preset asan",
            ctest="build/asan",
        ),
        Step(
            "1,000 async streams, thread sanitizer",
            "cmake --preset tsan && "
            "cmake --build --preset tsan -j2 --target fletching_async_stress_test && "
            "build/tsan/bin/fletching_async_stress_test --gtest_brief=1",
            environment={"FLETCHING_ASYNC_STREAMS": "1000"},
        ),
        Step(
            "all tests, optimized",
            "cmake --preset release && cmake --build --preset release -j2 && "
            "ctest --preset release",
            only_all=True,
            ctest="build/release",
        ),
        Step(
            "10,000 async streams",
            "build/cmake/bin/fletching_async_stress_test --gtest_brief=1",
            environment={"FLETCHING_ASYNC_STREAMS": "10000"},
            only_all=True,
        ),
        Step("fuzz targets, briefly", "tools/fuzz 5000"),
        Step("fuzz targets", "tools/fuzz", only_all=True),
        Step(
            "clang-tidy",
            "tools/build extract && for build in build/cmake build/extract build/fuzz; do "
            ".venv/bin/run-clang-tidy.py -clang-tidy-binary .venv/bin/clang-tidy -quiet -j2 "
            f"-p $build '{_OURS}' || exit 1; done",
            only_all=True,
        ),
        Step(
            "each header alone, but for those that need SYCL's or Metal's",
            "ls fletching/*.h* fletching/*/*.h* | grep -v -e /sycl.hpp -e /metal.hpp | "
            f"xargs -P2 -n1 sh -c '{_HEADER} -fsyntax-only $0 && "
            f"! {_HEADER} -E -P $0 | grep FLETCHING_VERSION_NAMESPACE'",
            "cpp/include",
            only_all=True,
        ),
        Step(
            "thread sanitizer",
            "cmake --preset tsan && cmake --build --preset tsan -j2 && ctest --preset tsan",
            only_all=True,
            ctest="build/tsan",
        ),
    ),
    "rust": (
        Step("build", "tools/build rust"),
        Step(
            "tests against the oracle",
            "cargo test --locked -p fletching-testing",
            "bindings/rust",
            _RUST,
        ),
        Step("all tests", "cargo test --locked --workspace --no-fail-fast", "bindings/rust", _RUST),
        Step("rustfmt", "cargo fmt --check", "bindings/rust"),
        Step("clippy", f"cargo clippy {_CARGO} -- -D warnings", "bindings/rust", _RUST),
        Step(
            "Miri",
            "rustup component add --toolchain nightly miri rust-src && "
            "cargo +nightly miri test --locked -p fletching-abi -p fletching-roundtrip --tests",
            "bindings/rust",
            {"CARGO_TARGET_DIR": "../../build/miri"},
            only_all=True,
        ),
    ),
    "go": (
        Step("build", "tools/build go"),
        Step("tests against the oracle", "go test -count=1 ./internal/oracle", "bindings/go", _GO),
        Step("all tests", f"{_GO_INCLUDE} go test -count=1 {_GO_UPSTREAM}", "bindings/go", _GO),
        Step("tests of the round trip", "go test -count=1 ./...", "bindings/go/roundtrip", _GO),
        Step("gofmt", 'test -z "$(gofmt -l bindings/go | tee /dev/stderr)"'),
        Step("vet", f"{_GO_INCLUDE} go vet {_GO_UPSTREAM}", "bindings/go", _GO),
        Step("vet of the round trip", "go vet ./...", "bindings/go/roundtrip", _GO),
        Step(
            "staticcheck",
            "GOBIN=$PWD/../../build/go/bin go -C tools install tool && "
            f"{_GO_INCLUDE} ../../build/go/bin/staticcheck {_GO_UPSTREAM} && "
            "cd roundtrip && ../../../build/go/bin/staticcheck ./...",
            "bindings/go",
            _GO,
        ),
        *(
            Step(f"{title} in {folder}", command, folder, {**_GO, **extra}, only_all=True)
            for folder in _GO_FOLDERS
            for title, command, extra in (
                ("race detector", "go test -count=1 -race ./...", {}),
                ("cgo checks", "go test -count=1 ./...", {"GOEXPERIMENT": "cgocheck2"}),
            )
        ),
        Step(
            "other targets",
            f"for target in {_GO_TARGETS}; do "
            "GOOS=linux GOARCH=$target CGO_ENABLED=0 go vet ./... || exit 1; done",
            "bindings/go",
            only_all=True,
        ),
    ),
    "java": (
        Step("build", "tools/build java"),
        Step(
            "tests against the oracle",
            "./mvn -B -ntp test -Dtest=AbiTest -pl fletching-jna,fletching-ffm -am --fail-at-end",
            "bindings/java",
        ),
        Step("all tests, formatter, lints", "./mvn -B -ntp verify", "bindings/java"),
    ),
    "python": (
        Step(
            "tests against the oracle",
            "../../.venv/bin/pytest -q tests/test_abi_against_oracle.py",
            "bindings/python",
        ),
        *_python("bindings/python"),
        *_python("tests/roundtrip"),
    ),
    "docs": (
        Step("links between pages", ".venv/bin/rumdl check --no-cache ."),
        *_python("docs/site"),
        Step("the site", "tools/docs", only_all=True),
    ),
    "roundtrip": (Step("every cell", ".venv/bin/python tests/roundtrip/roundtrip.py"),),
    "bench": (
        Step(
            "ruff", "../.venv/bin/ruff check . && ../.venv/bin/ruff format --check .", "benchmarks"
        ),
        Step("mypy", "../.venv/bin/mypy", "benchmarks"),
        Step("C++ beside raw C", "make bench-cpp BENCH='--only instructions'"),
    ),
    "targets": (Step("layouts and tests on other machines", "make targets", only_all=True),),
    "new-device": (
        *_python("tests/new_device"),
        Step(
            "a device that nobody has, in every language",
            ".venv/bin/python tests/new_device/new_device.py",
            only_all=True,
        ),
    ),
    "runtimes": (
        Step("the table against the vendors", ".venv/bin/python tests/runtimes/runtimes.py"),
        *_python("tests/runtimes"),
        Step(
            "every change of the table",
            "../../.venv/bin/pytest -q --every-change",
            "tests/runtimes",
            only_all=True,
        ),
    ),
    "faults": (
        *(step for step in _python("tests/faults") if not step.title.startswith("pytest")),
        Step("a sample", ".venv/bin/python tests/faults/faults.py --sample"),
        Step("every call", ".venv/bin/python tests/faults/faults.py", only_all=True),
        Step(
            "every call, address and undefined-behavior sanitizers",
            "cmake --preset asan && cmake --build --preset asan -j2 && "
            ".venv/bin/python tests/faults/faults.py --program build/asan/bin/fletching_faults "
            "--libraries build/asan/lib --json build/faults-asan.json",
            only_all=True,
        ),
    ),
    "gpu": (
        Step("programs of Rust and Go for a GPU machine", "tools/gpu-programs"),
        Step(
            "what a GPU machine runs, on the stand-in",
            "make test-gpu-standin GPU='--programs build/gpu-programs'",
        ),
        Step(
            "the same on the stand-in that waits as a driver does",
            "make test-gpu-standin GPU='--no-build --programs build/gpu-programs'",
            environment={"FLETCHING_STANDIN_MODE": "driver"},
        ),
        Step(
            "driver calls of a handoff, on the stand-in",
            ".venv/bin/python tests/gpu/gpu.py --standin --bench",
        ),
        *_python("tests/gpu"),
    ),
    "absent": (
        Step(
            "no header, compiler or library of a vendor",
            "mkdir -p build && tests/absent/build.sh",
            only_all=True,
        ),
    ),
    "mutants": (
        Step("a sample", ".venv/bin/python tests/mutants/mutants.py --sample 16"),
        *_python("tests/mutants"),
        Step(
            "the generator reads every mutant",
            f"{_BIN}/pytest -q --every-mutant",
            "tests/mutants",
            only_all=True,
        ),
        Step("every mutant", ".venv/bin/python tests/mutants/mutants.py", only_all=True),
    ),
}
