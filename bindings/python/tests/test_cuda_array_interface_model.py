"""The checks of the extension beside the model of tests/cuda_array_interface, on many dictionaries.

Each is a valid dictionary with a few values replaced from a list of good and bad values, because a
violation of one rule affects the checks of others.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from cuda_array_interface_vectors import Exposing
from fletching import check_cuda_array_interface

SHAPES = [(3,), (), (0,), (2, 3), (-1,), (1, 3), (2**40, 2**40), (2**64,), [3], 3, (True,), None]
STREAMS = [None, 0, 1, 2, 4096, -1, 2**63, 2**64 - 1, 2**64, "1", False]
VALUES: dict[str, list[object]] = {
    "shape": [*SHAPES],
    "typestr": ["<f4", "|u1", ">i8", "|i4", "<f3", "<M8[25s]", "|V0", "|O", "?", "", b"<f4", None],
    "data": [(4096, False), (0, True), (2**64 - 4, False), (2**64, False), (-1, False), (1, 1), 5],
    "version": [0, 1, 2, 3, 4, -1, 2**70, "3", True],
    "strides": [None, (4,), (12, 4), (-4,), (0,), (2**62,), (-(2**63),), (), [4], (None,)],
    "descr": [
        [("", "<f4")],
        [("a", "<f4", (2,))],
        [],
        [("a", [("b", "|V4")])],
        [("", "x")],
        (),
        None,
    ],
    "stream": [*STREAMS],
}


def load_model() -> Any:
    root = Path(__file__).parents[3]
    sys.path[:0] = [str(root / "generator"), str(root / "tests" / "cuda_array_interface")]
    from fletching_generator.spec.load import load_spec  # noqa: PLC0415
    from model import Model  # type: ignore[import-not-found]  # noqa: PLC0415

    del sys.path[:2]
    return Model(load_spec(root).cuda_array_interface)


MODEL = load_model()


def dictionary(chance: random.Random, masks: int = 2) -> dict[str, object]:
    said: dict[str, object] = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}
    for key in chance.sample(sorted(VALUES), chance.randint(0, 4)):
        said[key] = chance.choice(VALUES[key])
    if masks and chance.random() < 0.3:
        said["mask"] = chance.choice([Exposing(dictionary(chance, masks - 1)), None, 5])
    if chance.random() < 0.1:
        del said[chance.choice(sorted(said))]
    return said


@pytest.mark.parametrize("seed", range(20))
def test_extension_agrees_with_model(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        said = dictionary(chance)
        ours = [violation[:3] for violation in check_cuda_array_interface(said)]
        assert ours == MODEL.check(said), said
