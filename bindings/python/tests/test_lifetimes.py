"""Every order of destruction, any thread, fork, and the end of the interpreter."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

from capsules import Produced
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Error, Schema
from test_buffers import run

KINDS = [Array, DeviceArray]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_last_object_releases_array(kind: Any, order: tuple[int, ...]) -> None:
    source = Produced()
    array = kind.from_arrow(source)
    objects: list[Any] = [
        array,
        array.schema,
        array.__arrow_c_device_array__(),
        kind.from_arrow(array),
    ]
    del array
    for number, which in enumerate(order):
        assert ("array" in source.releases) == ({0, 2, 3} <= set(order[:number]))
        objects[which] = None
        gc.collect()
    assert sorted(source.releases) == ["array", "schema"]


@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_last_object_releases_stream_batch(kind: Any, order: tuple[int, ...]) -> None:
    source, schema = Produced(), Schema.from_arrow(Produced())
    batches = [source]
    if kind is ArrayStream:
        stream: Any = ArrayStream.from_batches(schema, iter(batches))
    else:
        stream = DeviceArrayStream.from_batches(schema, 1, iter(batches))
    objects = [stream, next(stream), stream.schema]
    del stream
    for number, which in enumerate(order):
        assert ("array" in source.releases) == (1 in order[:number])
        objects[which] = None
        gc.collect()
    assert sorted(source.releases) == ["array", "schema"]


def on_threads(count: int, work: Callable[[int], object]) -> None:
    errors: list[BaseException] = []

    def run_one(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run_one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("kind", KINDS)
def test_array_on_many_threads(kind: Any) -> None:
    batch = pyarrow.record_batch({"n": [1, 2, 3], "t": ["a", None, "c"]})
    array = kind.from_arrow(batch)

    def use(number: int) -> None:
        for i in range(200):
            column = array.column((number + i) % 2)
            assert len(column) == 3
            assert kind.from_arrow(array).schema.type == "struct<n: int64, t: string>"
            assert pyarrow.array(column).null_count == (number + i) % 2
            repr(array)

    on_threads(4, use)


@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_stream_on_many_threads(kind: Any) -> None:
    """Each batch goes to exactly one thread."""
    sources = [Produced(tuple(range(i + 1))) for i in range(200)]
    schema = Schema.from_arrow(Produced())
    if kind is ArrayStream:
        stream: Any = ArrayStream.from_batches(schema, sources)
    else:
        stream = DeviceArrayStream.from_batches(schema, 1, sources)
    lengths: Counter[int] = Counter()

    def read(_: int) -> None:
        for batch in stream:
            lengths[len(batch)] += 1

    on_threads(4, read)
    assert lengths == Counter(range(1, 201))
    assert all(sorted(source.releases) == ["array", "schema"] for source in sources)


def test_close_stream_during_read_on_other_thread() -> None:
    inside, go = threading.Event(), threading.Event()

    def batches() -> Any:
        inside.set()
        go.wait()
        yield Produced()

    stream = ArrayStream.from_batches(Schema.from_arrow(Produced()), batches())
    found: list[int] = []

    def read() -> None:
        with contextlib.suppress(Error):  # from the next read, after the stream was closed
            found.extend(len(batch) for batch in stream)

    reader = threading.Thread(target=read)
    reader.start()
    inside.wait()
    closer = threading.Thread(target=stream.close)
    closer.start()
    go.set()
    reader.join()
    closer.join()
    assert found in ([3], [])


# --- The end of the interpreter -------------------------------------------------------------------

ALIVE = """
    import threading
    import fletching
    from fletching import DeviceArray, DeviceArrayStream, from_buffer

    array = DeviceArray.from_arrow(from_buffer(bytearray(8)))
    capsules = array.__arrow_c_device_array__()
    stream = DeviceArrayStream.from_batches(array.schema, 1, [array] * 3)
    batch = next(stream)
"""


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="globals"),
        pytest.param(
            "import numpy\n    kept = numpy.from_dlpack(array)", id="in an array of NumPy"
        ),
        pytest.param("fletching.kept = array, capsules, stream, batch", id="in the module"),
        pytest.param("cycle = [array, stream, capsules]\n    cycle.append(cycle)", id="a cycle"),
        pytest.param(
            "class Late:\n"
            "        def __del__(self, stream=stream): next(stream)\n"
            "    late = Late()",
            id="used by a finalizer",
        ),
        pytest.param("import atexit\n    atexit.register(lambda: next(stream))", id="used at exit"),
        pytest.param(
            "stop = threading.Event()\n"
            "    threading.Thread(target=lambda: (stop.wait(), next(stream)), daemon=True).start()",
            id="a daemon thread",
        ),
    ],
)
def test_objects_at_interpreter_end(more: str) -> None:
    done = run(f"{ALIVE}\n    {more}\n    print(len(batch))")
    assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
    if "late" in more:
        assert "batches: the Python interpreter has ended" in done.stderr
    else:
        assert done.stderr == ""


BUSY = """
    import itertools, threading
    from fletching import ArrayStream, DeviceArray, DeviceArrayStream, from_buffer

    array = DeviceArray.from_arrow(from_buffer(bytearray(8)))
    forever = itertools.repeat(array)
    generator = (array for _ in forever)
    make = DeviceArrayStream.from_batches
    streams = [make(array.schema, 1, batches) for batches in (forever, generator)]
    begun = threading.Event()

    class Source:
        def __arrow_c_device_array__(self, *_, **__):
            return array.__arrow_c_device_array__()

    def work():
        while True:
            {call}
            begun.set()

    threading.Thread(target=work, daemon=True).start()
    begun.wait()
    print("end")
"""


@pytest.mark.parametrize(
    "call",
    [
        "next(streams[0])",
        "next(streams[1])",
        "DeviceArray.from_arrow(Source())",
        "array.__arrow_c_array__()",
        "array.__dlpack__()",
        "array.synchronize()",
        "array.to_numpy()",
        "repr(streams[0])",
        "ArrayStream.from_batches(array.schema, [array])",
    ],
)
def test_daemon_thread_in_call_at_interpreter_end(call: str) -> None:
    """Python before 3.14 ends the thread with pthread_exit, which no noexcept function survives."""
    done = run(BUSY.format(call=call))
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert done.stderr in (
        "",
        "fletching: released after the end of Python: the objects are leaked\n",
    )


def test_daemon_thread_in_generator_does_not_delay_exit() -> None:
    done = run(
        """
    import threading
    from fletching import ArrayStream, from_buffer

    begun = threading.Event()

    def batches():
        begun.set()
        threading.Event().wait()
        yield

    stream = ArrayStream.from_batches(from_buffer(b"").schema, batches())
    threading.Thread(target=next, args=(stream,), daemon=True).start()
    begun.wait()
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ASYNC = """
    import asyncio, os, sys
    from fletching import AsyncDeviceArrayStream, DeviceArray, from_buffer, send_async

    array = DeviceArray.from_arrow(from_buffer(bytearray(8)))

    async def batches():
        for _ in range(3):
            yield array

    async def run(most):
        senders = []
        def start(handler):
            senders.append(asyncio.ensure_future(send_async(array.schema, 1, batches(), handler)))
        stream = AsyncDeviceArrayStream.connect(start)
        count = 0
        async for _ in stream:
            count += 1
            if count == most:
                break
        await senders[0]
        return count
"""


def test_async_streams_in_forked_child() -> None:
    done = run(
        ASYNC
        + """
    first = asyncio.run(run(9))
    pid = os.fork()
    second = asyncio.run(run(2))
    if pid == 0:
        os._exit(10 * first + second)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "32\n", "")


def test_open_async_stream_at_interpreter_end() -> None:
    """Neither end is closed; the executor's thread may still try to call Python."""
    done = run(
        ASYNC
        + """
    loop = asyncio.new_event_loop()
    kept = []
    async def leave():
        def start(handler):
            kept.append(send_async(array.schema, 1, batches(), handler))
            kept.append(asyncio.ensure_future(kept[0]))
        kept.append(AsyncDeviceArrayStream.connect(start))
        kept.append(await anext(kept[-1]))
    loop.run_until_complete(leave())
    print(len(kept[-1]))
    os.environ.clear()
    """
    )
    assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
    # Printed only by Fletching: nanobind reports no leaks. The thread may finish before the end.
    leaked = "fletching: released after the end of Python: the objects are leaked\n"
    assert done.stderr in ("", leaked)


def test_finished_async_streams_at_interpreter_end() -> None:
    """The executor's thread has not released them yet, so the interpreter's end waits for it."""
    done = run(
        ASYNC
        + """
    async def cancel():
        for _ in range(200):
            start = lambda handler: senders.append(
                asyncio.ensure_future(send_async(array.schema, 1, batches(), handler)))
            await anext(AsyncDeviceArrayStream.connect(start))
    senders = []
    asyncio.run(cancel())
    """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_interpreter_end_waits_for_thread_in_python() -> None:
    """It releases the GIL meanwhile, and continues when the thread has left."""
    done = run(
        """
    import atexit, os, sys, threading
    from fletching import _core, abi
    inside, go = threading.Event(), threading.Event()
    def notify():
        inside.set()
        go.wait()
        while open(f"/proc/self/task/{os.getpid()}/stat").read().split()[2] != "S":
            pass  # the main thread does not sleep yet
        print("left", flush=True)
    consumer = _core.AsyncConsumer.create(notify)
    handler = abi.ArrowAsyncDeviceStreamHandler.from_address(consumer.handler())
    end = lambda: handler.on_error(handler, 5, None, None)
    threading.Thread(target=end, daemon=True).start()
    inside.wait()
    sys.setswitchinterval(1000)  # the thread gets the GIL when this one gives it up
    atexit.register(go.set)
    print("main", flush=True)
    """
    )
    assert (done.returncode, done.stdout) == (0, "main\nleft\n"), done.stderr
