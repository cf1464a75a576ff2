"""Every case of the hostile peer (tests/hostile) about DLPack tensors."""

from __future__ import annotations

import threading
from typing import Any, Self

import numpy
import pytest

import hostile
from capsules import capsule_at, name_of
from fletching import DeviceArray, abi, from_dlpack
from hostile import Case, account, each, raised_by

__all__ = ["account"]

pytestmark = pytest.mark.usefixtures("account")


class Tensor:
    """A DLPack exporter. At the end of a block it deletes what was not consumed."""

    def __init__(self, case: Case, *, versioned: bool) -> None:
        self._kind = abi.DLManagedTensorVersioned if versioned else abi.DLManagedTensor
        self._name = b"dltensor_versioned" if versioned else b"dltensor"
        self._address = hostile.tensor_of(case, versioned=versioned)
        self.capsule = capsule_at(self._address, self._name)
        tensor: Any = self._kind.from_address(self._address).dl_tensor
        self.device = tensor.device.device_type, tensor.device.device_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if name_of(self.capsule) == self._name:
            abi.release(self._kind.from_address(self._address))

    def __dlpack__(self, **_: object) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def expected_values(case: Case) -> list[int]:
    return {"tensor.empty": [], "tensor.scalar": [1]}.get(case.name, [1, 2, 3])


def play(case: Case, *, versioned: bool) -> None:
    with Tensor(case, versioned=versioned) as tensor:
        arrays: list[DeviceArray] = []
        error = raised_by(lambda: arrays.append(from_dlpack(tensor)))
        case.check(error)
        consumed = name_of(tensor.capsule).startswith(b"used_")
        assert consumed or not arrays
        for array in arrays:
            if case.outcome == hostile.ACCEPTED:
                assert array.device_type == tensor.device[0]
                if array.device_type == 1:
                    values = numpy.from_dlpack(array).ravel().tolist()
                    assert values == expected_values(case)
            thread = threading.Thread(target=arrays.clear)
            thread.start()
            thread.join()


@each(hostile.TENSOR, hostile.VERSIONED_TENSOR)
def test_versioned_tensors(case: Case) -> None:
    play(case, versioned=True)


@each(hostile.TENSOR)
def test_legacy_tensors(case: Case) -> None:
    play(case, versioned=False)
