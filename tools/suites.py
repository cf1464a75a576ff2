"""The steps of the test suites, which suite.py runs with CTest. Commands run in bash."""

from __future__ import annotations

from dataclasses import dataclass, replace

import languages
from languages import Language, load


@dataclass(frozen=True)
class Step(languages.Step):
    folder: str = "."  # working directory


def _slow(title: str, command: str, folder: str = ".") -> Step:
    """A step only of `make test-all`."""
    return Step(title, command, folder=folder, only_all=True)


def _pytest(folder: str, tests: str = "", cores: int = 2) -> Step:
    command = f"{'../' * (folder.count('/') + 1)}.venv/bin/pytest -q -rs {tests}"
    return Step(f"pytest in {folder}", command, folder=folder, cores=cores)


# One folder after the other, because some have modules of the same name. Languages check their own.
# The programs of docs/reports are for other projects, and have no types.
_MYPY = r"""
for folder in generator/extract generator/fletching_generator generator/hatch_build.py packages \
  tools $(dirname docs/*/*.py tests/*/*.py tests/peers/*/*.py | grep -vx docs/reports | sort -u); do
  .venv/bin/mypy "$folder" || wrong=$folder
done
[ -z "$wrong" ]
"""

# Only a hang takes this long. The limits for a device (tests/gpu) are too short for a slow machine.
_PATIENT = {
    "FLETCHING_GPU_CHECK_SECONDS": "300",
    "FLETCHING_GPU_PROGRAM_SECONDS": "1200",
    "FLETCHING_GPU_TOTAL_SECONDS": "3600",
}

LANGUAGES = load()


def _of(language: Language) -> tuple[Step, ...]:
    """The steps in [[suite]] of language.toml, which run in the home of the language."""
    variables = languages.environment(language)
    home = language.folder
    steps = tuple(
        Step(**{**vars(step), "environment": {**variables, **step.environment}, "folder": home})
        for step in language.suite
    )
    if language.mutation:
        tried = f".venv/bin/python tests/mutants_code/language_mutants.py {language.name} --sample"
        steps += (_slow("mutants of the code, a sample", tried),)
    if (languages.ROOT / home / "build-package").is_file():
        package = f".venv/bin/python packages/packages.py quick {home}"
        steps += (Step("package", package, cores=1),)
    if language.blocks:
        blocks = f".venv/bin/python docs/blocks/code_blocks.py {language.name}"
        steps += (Step("code blocks of the pages", blocks),)
    return steps


SUITES: dict[str, tuple[Step, ...]] = {
    "spec": (
        Step("build", "tools/build extract"),
        Step("spec is sound", ".venv/bin/fletching check-spec"),
        Step("generated files agree", ".venv/bin/fletching generate --check"),
        _pytest("generator", "-n 2 tests"),
        _pytest("tests/corpus"),
        # Distributes whole files, because the tests of a file share their downloads.
        _pytest("tests/published", "-n 2 --dist loadfile"),
        Step(
            "tests of fletching-extract",
            "ctest --test-dir build/extract --output-on-failure",
            ctest="build/extract",
        ),
    ),
    "lint": (
        Step("ruff", ".venv/bin/ruff check . && .venv/bin/ruff format --check .", cores=1),
        Step("mypy", _MYPY, cores=1),
        Step("shell scripts and commands", ".venv/bin/python tools/check_shell.py", cores=1),
        Step(
            "workflows",
            'go -C tools/actionlint tool actionlint -shellcheck "$PWD/.venv/bin/shellcheck"',
            cores=1,
        ),
    ),
    **{name: _of(language) for name, language in LANGUAGES.items()},
    "languages": (
        _pytest("tools", "-n 2"),
        _pytest("tests/rules", cores=1),
        Step("doctests of the tools", ".venv/bin/python -m doctest tools/skipped.py", cores=1),
    ),
    "docs": (
        Step("links between pages, fences", ".venv/bin/rumdl check --no-cache .", cores=1),
        Step("code blocks of the pages", ".venv/bin/python docs/blocks/code_blocks.py", cores=1),
        _pytest("docs/blocks", cores=1),
        _pytest("docs/site", cores=1),
        _slow("the site", "docs/site/build"),
        _slow(
            "every page in a browser",
            "docs/site/setup-browser && .venv/bin/python docs/site/check_pages.py build/site",
        ),
    ),
    "roundtrip": (
        Step("every cell", ".venv/bin/python tests/roundtrip/roundtrip.py"),
        _pytest("tests/roundtrip", cores=1),
        _pytest("tests/peers/dlpack", "test_subjects.py", cores=1),
        _slow(
            "the page in a browser",
            "command -v chromium >/dev/null || "
            "tools/install chromium-headless-shell:chromium-headless-shell; "
            "cd tests/roundtrip && ../../.venv/bin/pytest -q -rs test_page.py",
        ),
    ),
    "bench": (
        _pytest("tests/benchmarks", cores=1),
        *(
            Step(
                f"{language.title} benchmark",
                f"make bench-{name} BENCH='{language.bench.step}'",
                only_all=language.bench.only_all,
                cores=language.bench.cores,
            )
            for name, language in LANGUAGES.items()
            if language.bench
        ),
    ),
    "packages": (
        Step("fletching-tools", ".venv/bin/python packages/packages.py quick generator", cores=1),
        _pytest("packages", "tests", cores=1),
        _slow("every package", "make packages"),
        _slow("a fresh project with each", "make test-packages"),
        _slow("the same bytes again", "make compare-packages"),
        _slow("a planted break of each API", "make compatible-guards"),
        _slow("two releases into local registries", "make rehearsal"),
    ),
    "targets": (_slow("layouts and tests on other machines", "make targets"),),
    "platforms": (_slow("what runs and what compiles elsewhere", "make platforms"),),
    "new-device": (
        _slow("a device in every language", ".venv/bin/python tests/mutants/new_device.py"),
    ),
    "new-language": (replace(_pytest("tests/new_language", "-s"), only_all=True),),
    "runtimes": (
        Step("the table against the vendors", ".venv/bin/python tests/runtimes/runtimes.py"),
        _pytest("tests/runtimes", "-n 2"),
        _slow(
            "every change of the table",
            "../../.venv/bin/pytest -q --every-change",
            "tests/runtimes",
        ),
    ),
    "faults": (
        Step("a sample", ".venv/bin/python tests/faults/faults.py --sample"),
        _slow("every call", ".venv/bin/python tests/faults/faults.py"),
        _slow(
            "every call, address and undefined-behavior sanitizers",
            "cmake --preset asan && cmake --build --preset asan -j2 && "
            ".venv/bin/python tests/faults/faults.py --program build/asan/bin/fletching_faults "
            "--libraries build/asan/lib --json build/faults-asan.json",
        ),
    ),
    "gpu": (
        Step(
            "build",
            "cmake --preset default && cmake --build --preset default -j2 "
            "--target fletching_gpu_programs fletching_gpu_bench",
            needed=True,
        ),
        Step("programs for a GPU machine", "tests/gpu/build-programs"),
        Step(
            "what a GPU machine runs, on the stand-in",
            "make test-gpu-standin GPU='--no-build --programs build/gpu-programs'",
            environment=_PATIENT,
            cores=1,
        ),
        Step(
            "the same on the stand-in that waits as a driver does",
            "make test-gpu-standin GPU='--no-build --programs build/gpu-programs'",
            environment={**_PATIENT, "FLETCHING_STANDIN_MODE": "driver"},
            cores=1,
        ),
        Step(
            "driver calls of a handoff, on the stand-in",
            ".venv/bin/python tests/gpu/gpu.py --standin --bench",
        ),
        _pytest("tests/gpu", cores=1),
    ),
    "validate": (
        _pytest("tests/validate", "-n 2"),
        _pytest("tests/programs", "-n 2"),
        _pytest("tests/peers/table", cores=1),
        _slow("released libraries, compared with the table", "make conformance"),
    ),
    "absent": (
        _slow("nothing of a vendor installed", "mkdir -p build && tests/standin/absent/build.sh"),
    ),
    "mutants": (
        Step("a sample", ".venv/bin/python tests/mutants/mutants.py --sample 8"),
        _pytest("tests/mutants", "-n 2"),
        _slow(
            "the generator reads every mutant",
            "../../.venv/bin/pytest -q --every-mutant",
            "tests/mutants",
        ),
        _slow("every mutant in turn", ".venv/bin/python tests/mutants/mutants.py --in-turn"),
    ),
    "mutants-code": (
        replace(_pytest("tests/mutants_code"), only_all=True),
        _slow(
            "ten mutants of the code",
            "tools/build extract cpp && "
            ".venv/bin/python tests/mutants_code/mutants_code.py --sample 10",
        ),
    ),
}
