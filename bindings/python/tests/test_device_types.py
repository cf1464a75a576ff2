"""The device types: open integers with names, and the table."""

from __future__ import annotations

import pickle

import pytest

from fletching import abi
from fletching.abi import DEVICES, DeviceType, EventPointer, find_device


def test_known_types_print_name() -> None:
    assert str(DeviceType.CUDA_HOST) == "cuda_host"
    assert repr(DeviceType.MAIA) == "maia"
    assert f"{DeviceType.TRN} {DeviceType.TRN:d}" == "trn 18"


def test_unknown_types_print_number() -> None:
    assert str(DeviceType(9999)) == "unknown(9999)"
    assert repr(DeviceType(-1)) == "unknown(-1)"
    assert str(DeviceType(6)) == "unknown(6)"


def test_reserved_numbers_print_name() -> None:
    assert str(DeviceType(20)) == "unreleased(tpu_host, 20)"
    assert find_device(20) is None
    assert str(abi.DataTypeCode(18)) == "unreleased(bcomplex, 18)"


@pytest.mark.parametrize("value", [21, 0, -1, 5, 2**31 - 1, -(2**31)])
def test_unknown_types_pass_through_field(value: int) -> None:
    array, stream = abi.ArrowDeviceArray(), abi.ArrowDeviceArrayStream()
    array.device_type = DeviceType(value)
    stream.device_type = array.device_type
    assert DeviceType(stream.device_type) == DeviceType(value) == value


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**64 + 1])
def test_rejects_type_out_of_range(value: int) -> None:
    with pytest.raises(
        ValueError, match=f"DeviceType: out of range: expected an int32, got {value}"
    ):
        DeviceType(value)


def test_types_are_numbers() -> None:
    assert DeviceType.CUDA == abi.ARROW_DEVICE_CUDA == 2
    assert hash(DeviceType.CUDA) == hash(2)
    assert type(pickle.loads(pickle.dumps(DeviceType.CUDA))) is DeviceType


def test_find_device_finds_every_device() -> None:
    assert [device.type for device in DEVICES] == sorted({device.type for device in DEVICES})
    for device in DEVICES:
        assert find_device(int(device.type)) is device
        assert getattr(DeviceType, device.name.upper()) == device.type
        if device.arrow_macro:
            assert getattr(abi, device.arrow_macro) == device.type
    assert find_device(9999) is None


def test_find_device_describes_events() -> None:
    cuda = find_device(DeviceType.CUDA)
    assert cuda is not None
    assert (cuda.event_pointer, cuda.event_type) == (EventPointer.ADDRESS_OF_HANDLE, "cudaEvent_t*")
    cpu = find_device(DeviceType.CPU)
    assert cpu is not None
    assert (cpu.event_pointer, cpu.event_type) == (EventPointer.NONE, None)
