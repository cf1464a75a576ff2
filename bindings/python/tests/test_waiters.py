"""Waits in a Python object, for a device type without a runtime in Fletching."""

from __future__ import annotations

import errno
import gc
import sys
import weakref
from typing import Any

import numpy
import pytest

from capsules import ProducedOnDevice
from fletching import DeviceArray, Error, from_dlpack, register_waiter
from test_buffers import run

EVENT = 0x5EED
DEVICE = 9999  # no runtime supports it
EXT_DEV = 12  # a device type that DLPack has


class Waiter:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def synchronize(self, event: int) -> None:
        self.calls.append(event)

    def wait_on(self, event: int, stream: int) -> None:
        self.calls.append((event, stream))

    def ready(self, event: int) -> bool:
        self.calls.append(event)
        return len(self.calls) > 1


def array() -> DeviceArray:
    return DeviceArray.from_arrow(ProducedOnDevice(device_type=DEVICE, sync_event=EVENT))


def test_waiter_implements_operations() -> None:
    waiter = Waiter()
    register_waiter(DEVICE, waiter)
    given = array()
    assert not given.ready()
    given.wait_on(7)
    given.synchronize()
    assert given.ready()
    assert waiter.calls == [EVENT, (EVENT, 7), *[EVENT] * 3]  # synchronize calls ready first


def test_waiter_exception_becomes_error() -> None:
    class Failing(Waiter):
        def synchronize(self, event: int) -> None:
            raise OSError(errno.ETIMEDOUT, "too late")

    register_waiter(DEVICE, Failing())
    with pytest.raises(Error, match="too late") as raised:
        array().synchronize()
    assert raised.value.errno == errno.ETIMEDOUT


CALLS: dict[str, Any] = {
    "__dlpack__": lambda given: given.__dlpack__(max_version=(1, 0)),
    "from_dlpack": from_dlpack,
    "wait_on": lambda given: given.wait_on(1),
    "ready": lambda given: given.ready(),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_waiter_exit_is_raised(name: str, error: type[BaseException]) -> None:
    class Interrupted:
        def synchronize(self, event: int) -> None:
            raise error

        def wait_on(self, event: int, stream: int) -> None:
            raise error

        ready = synchronize

    register_waiter(EXT_DEV, Interrupted())
    source = ProducedOnDevice(device_type=EXT_DEV, sync_event=EVENT)
    with pytest.raises(error):
        CALLS[name](DeviceArray.from_arrow(source))


def test_waiter_and_array_of_same_module_do_not_leak() -> None:
    done = run(
        """
    from fletching import from_buffer, register_waiter

    class Waiter:
        def synchronize(self, event):
            pass

        wait_on = ready = synchronize

        def __del__(self):
            print("released", flush=True)

    array = from_buffer(b"abc")
    for _ in range(2):
        register_waiter(9999, Waiter())
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "released\n" * 2, "")


def test_ready_accepts_any_truth_value() -> None:
    class Numeric(Waiter):
        def ready(self, event: int) -> Any:
            return numpy.bool_(True)

    register_waiter(DEVICE, Numeric())
    assert array().ready()


def test_register_waiter_rejects_device_with_runtime() -> None:
    with pytest.raises(Error, match="register_waiter: cuda needs no waiter"):
        register_waiter(2, Waiter())


def test_register_waiter_does_not_keep_rejected_waiter() -> None:
    waiter = Waiter()
    before = sys.getrefcount(waiter)
    with pytest.raises(Error):
        register_waiter(2, waiter)
    assert sys.getrefcount(waiter) == before


def test_register_waiter_keeps_waiter() -> None:
    waiter = Waiter()
    alive = weakref.ref(waiter)
    register_waiter(DEVICE, waiter)
    del waiter
    gc.collect()
    assert alive() is not None


def test_ready_without_truth_value_raises() -> None:
    class Undecided:
        def __bool__(self) -> bool:
            raise ValueError("undecided")

    class Failing(Waiter):
        def ready(self, event: int) -> Any:
            return Undecided()

    register_waiter(DEVICE, Failing())
    with pytest.raises(Error, match="ValueError: undecided"):
        array().ready()
