"""Failing Python allocations: each allocation of a call in turn, in a child process."""

from __future__ import annotations

import pytest

from test_buffers import run

pytest.importorskip("_testcapi")

# A crash ends the child. Exceptions other than MemoryError are printed.
PROGRAM = """
    import array, gc, os, sys
    import _testcapi, numpy, pyarrow
    import fletching
    from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema

    source, values = array.array("q", [1, 2, 3]), numpy.arange(3)
    plain = fletching.from_buffer(source)
    device = DeviceArray.from_arrow(plain)

    def stream(kind, *device_type):
        batches = kind.from_batches(plain.schema, *device_type, [plain, plain])
        assert len(list(kind.from_arrow(batches))) == 2

    pair = {"shape": (2,), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 0}
    fields = pyarrow.schema([pyarrow.field("n", "int8", metadata={"k": "v"})], metadata={"k": "v"})
    schema = Schema.from_arrow(fields)

    class Stream:
        def __cuda_stream__(self): return 0, 7

    def wrong():
        try:
            device.column(5)
        except fletching.Error:
            pass

    def attempt(failing, after):
        _testcapi.set_nomemory(failing, after)
        try:
            call()
            _testcapi.remove_mem_hooks()
        except MemoryError:
            _testcapi.remove_mem_hooks()
        except BaseException as error:
            _testcapi.remove_mem_hooks()
            print(failing, repr(error))

    call = CALL
    for _ in range(3):
        call()
    for failing in range(60):
        attempt(failing, failing + 1)
        gc.collect()
    call()
"""

CALLS = {
    "export": "lambda: device.__arrow_c_device_array__()",
    "export with a requested schema": (
        "lambda: device.__arrow_c_device_array__(plain.schema.__arrow_c_schema__())"
    ),
    "export to the CPU": "lambda: plain.__arrow_c_array__()",
    "import": "lambda: DeviceArray.from_arrow(plain)",
    "import of any object": "lambda: fletching.from_arrow(device)",
    "import of a schema": "lambda: Schema.from_arrow(plain.schema)",
    "from_buffer": "lambda: fletching.from_buffer(source)",
    "from_dlpack": "lambda: fletching.from_dlpack(values)",
    "from_dlpack by methods": "lambda: fletching.from_dlpack(values, copy=True)",
    "from_dlpack with a device": "lambda: fletching.from_dlpack(values, device=(1, 0))",
    "__dlpack__": "lambda: numpy.from_dlpack(device)",
    "__dlpack__ with a copy": "lambda: device.__dlpack__(max_version=(1, 0), copy=True)",
    "to_numpy": "lambda: device.to_numpy()",
    "check_cuda_array_interface": "lambda: fletching.check_cuda_array_interface(pair)",
    "wait_on": "lambda: device.wait_on(Stream())",
    "stream": "lambda: stream(ArrayStream)",
    "device stream": "lambda: stream(DeviceArrayStream, 1)",
    "fields": "lambda: (repr(schema), schema.children[0].metadata, device.buffers)",
    "error": "wrong",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_failed_allocation_is_handled(call: str) -> None:
    done = run(PROGRAM.replace("CALL", call))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
