"""Tests of the derived specs and of the verdicts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mutants
import mutations
import verdicts
from fletching_generator.errors import SpecError
from fletching_generator.spec.load import load_spec
from mutations import Mutant
from scratch import Outcome, generated
from verdicts import Equivalents

ROOT = Path(__file__).resolve().parents[2]
GOOD = mutations.read(ROOT / "spec")
MUTANTS = mutants.derive(GOOD)
BY_ID = {mutant.id: mutant for mutant in MUTANTS}
SWAPPED = BY_ID["swap:ArrowDeviceArray.device_id+device_type"]
# Without --every-mutant, the generator reads one of this many, because reading a spec is slow.
SAMPLE_STEP = 8
LINE = "ArrowDeviceArray.device_id: offset 80 upstream, 88 in the binding"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "spec", tmp_path / "spec")
    return tmp_path


def test_mutants_have_unique_ids() -> None:
    assert len(MUTANTS) >= 100
    assert len(BY_ID) == len(MUTANTS)


def test_original_spec_is_unchanged() -> None:
    assert mutations.read(ROOT / "spec") == GOOD


def test_spec_round_trips(root: Path) -> None:
    mutations.write(GOOD, root / "spec")
    assert load_spec(root) == load_spec(ROOT)


def test_generator_accepts_and_distinguishes_every_mutant(
    root: Path, pytestconfig: pytest.Config
) -> None:
    good = load_spec(ROOT)
    step = 1 if pytestconfig.getoption("every_mutant") else SAMPLE_STEP
    refused = []
    for mutant in MUTANTS[::step]:
        mutations.write(mutant.documents, root / "spec")
        try:
            if load_spec(root, events=False) == good:
                refused.append(f"{mutant.id}: the same as the good spec")
        except SpecError as error:
            refused.append(f"{mutant.id}: {error}")
    assert not refused, "\n".join(refused)


def test_generator_renders_unknown_argument() -> None:
    mutant = BY_ID["signature:ArrowArray.release.add-extra"]
    assert any("extra" in text for text in generated(mutant.documents).values())


def test_each_mutant_has_one_build_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Mutant] = []
    monkeypatch.setattr(mutants.Run, "_run_build", lambda run, build, own: tried.extend(own))
    monkeypatch.setattr("sys.argv", ["mutants.py", "--in-turn"])
    mutants.Run(mutants.parse()).run()
    assert sorted(mutant.id for mutant in tried) == sorted(BY_ID)


def test_sample_is_subset_of_mutants() -> None:
    assert set(mutants.SAMPLE) <= set(BY_ID)


def test_first_eight_sample_mutants_have_different_kinds() -> None:
    ways = {mutant.partition(":")[0] for mutant in mutants.SAMPLE[:8]}
    assert len(ways) == 8


# --- Verdicts ------------------------------------------------------------------------------------


@pytest.fixture
def equivalents(tmp_path: Path) -> Equivalents:
    path = tmp_path / "equivalents.yaml"
    path.write_text('equivalents: [{mutants: "sign:.*", languages: [quiver], reason: The same.}]')
    return Equivalents(path)


def judge(equivalents: Equivalents, code: int, output: str, mutant: Mutant = SWAPPED) -> str:
    return verdicts.of_run(mutant, "quiver", Outcome(code, output), 1, equivalents).result


def test_kill_requires_oracle_line_about_field(equivalents: Equivalents) -> None:
    assert judge(equivalents, 1, f"    oracle_test.go:74: {LINE}\nFAIL") == verdicts.KILLED
    elsewhere = LINE.replace("device_id", "sync_event")
    assert judge(equivalents, 1, elsewhere) == verdicts.NO_LINE
    of_the_binding = "ArrowDeviceArray.device_id: is wrong"
    assert judge(equivalents, 1, of_the_binding) == verdicts.NO_LINE


def test_crash_is_not_kill(equivalents: Equivalents) -> None:
    assert judge(equivalents, -11, LINE) == verdicts.CRASH
    assert judge(equivalents, 2, LINE) == verdicts.CRASH


def test_compile_error_is_not_kill() -> None:
    verdict = verdicts.of_build_error(SWAPPED, "quiver", Outcome(1, LINE))
    assert verdict.result == verdicts.COMPILE_ERROR


def test_survivor_must_be_listed(equivalents: Equivalents) -> None:
    assert judge(equivalents, 0, "") == verdicts.SURVIVED
    assert list(equivalents.unused()) == ["sign:.*"]
    signed = BY_ID["sign:ArrowSchema.flags-uint64"]
    assert judge(equivalents, 0, "", signed) == verdicts.EQUIVALENT
    assert not list(equivalents.unused())


@pytest.mark.parametrize(
    "line",
    [
        "ArrowDeviceArray.reserved[0]: byte 104 of the struct is 0x1e, expected 0x21; the field",
        "ArrowAsyncProducer.request argument 1 (n): C sent 8589934593, the callback saw 1",
        "ArrowSchema.release: C called it, the call arrived at ArrowArray.release",
        "ArrowSchema.release: signature p->v upstream, p->4 in the binding",
        "ArrowSchema.release: the binding has no such callback",
        "ARROW_DEVICE_ROCM: 10 upstream, 110 in the binding",
        "ARROW_DEVICE_ROCM: the binding has no such constant",
        "DLDeviceType.kDLCUDAX: upstream has no such enumerator",
        "DLDataTypeCode.kDLInt: the binding has no such enumerator",
        "DLPACK_FLAG_BITMASK_IS_COPIED: 2 upstream, 102 in the binding",
        "cuda.event: pending by the runtime, failed by the tables",
        "opencl.event: pending or done by the runtime, signal 11 by the tables",
    ],
)
def test_oracle_lines_are_recognized(line: str) -> None:
    subject = line.split(":", maxsplit=1)[0].split(" ", maxsplit=1)[0].removesuffix("[0]")
    assert verdicts.oracle_line(f"  E  {line}\nmore", [subject]) == line
    assert verdicts.oracle_line(line, ["ArrowArray.length"]) is None
