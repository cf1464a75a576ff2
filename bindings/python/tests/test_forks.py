"""Objects that other threads of the parent were using, in a child of fork."""

from __future__ import annotations

import errno

from test_buffers import run

STREAM = """
    import os, sys, threading
    from fletching import ArrayStream, Error, from_buffer

    array = from_buffer(bytearray(8))

    def status(pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_stream_read_by_other_thread_returns_echild() -> None:
    done = run(
        STREAM
        + """
    inside, go = threading.Event(), threading.Event()
    def batches():
        inside.set()
        go.wait()
        yield array
    stream = ArrayStream.from_batches(array.schema, batches())
    read = []
    thread = threading.Thread(target=lambda: read.extend(stream))
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        codes = set()
        for call in (stream.close, stream.__next__, stream.__arrow_c_stream__):
            try:
                call()
            except Error as error:
                codes.add(error.errno)
                assert "when the process was forked" in str(error)
        repr(stream)
        other = ArrayStream.from_batches(array.schema, [array])
        os._exit(codes.pop() if len(codes) == 1 and len(list(other)) == 1 else 1)
    go.set()
    thread.join()
    print(status(pid), len(read))
    """
    )
    assert (done.returncode, done.stdout) == (0, f"{errno.ECHILD} 1\n"), done.stderr


def test_producer_forks_child_continues_stream() -> None:
    """The child continues with the stream that its own thread was reading."""
    done = run(
        STREAM
        + """
    pids = []
    def batches():
        pids.append(os.fork())
        yield array
        yield array
    stream = ArrayStream.from_batches(array.schema, batches())
    count = len([next(stream), *stream])
    if pids == [0]:
        os._exit(count)
    print(count, status(pids[0]))
    """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 2\n", "")


def test_async_stream_of_parent_returns_echild() -> None:
    done = run(
        STREAM
        + """
    import asyncio, gc
    from fletching import AsyncDeviceArrayStream, abi
    cancelled = []
    class Methods:
        def request(self, *_): pass
        def cancel(self, *_): cancelled.append(os.getpid())
    producer, handlers = abi.ArrowAsyncProducer(device_type=1), []
    abi.implement(producer, Methods())

    def start(taken):
        handler = abi.ArrowAsyncDeviceStreamHandler.from_address(taken.take())
        handler.producer = abi.ctypes.pointer(producer)
        capsule = array.schema.__arrow_c_schema__()
        schema = abi.ArrowSchema.from_address(get(capsule, b"arrow_schema"))
        assert handler.on_schema(handler, schema) == 0
        handlers.append(handler)

    get = abi.ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = abi.ctypes.c_void_p, (abi.ctypes.py_object, abi.ctypes.c_char_p)

    async def main():
        stream = AsyncDeviceArrayStream.connect(start)
        pid = os.fork()
        if pid == 0:
            try:
                await stream.schema()
            except Error as error:
                code = error.errno
            stream.cancel()
            del stream
            gc.collect()
            os._exit(code if cancelled == [] else 1)
        print(status(pid), cancelled == [], (await stream.schema()).type)
        stream.cancel()
        print(cancelled == [os.getpid()])
        handlers[0].release(handlers[0])

    asyncio.run(main())
    """
    )
    expected = "fletching: an async stream was released in a child of fork: it is leaked\n"
    assert (done.returncode, done.stdout) == (0, f"{errno.ECHILD} True uint8\nTrue\n"), done.stderr
    assert done.stderr == expected


def test_parent_handler_is_not_failed_in_child() -> None:
    done = run(
        STREAM
        + """
    from fletching import AsyncHandler, abi
    calls = []
    class Methods:
        def on_schema(self, *_): return 0
        def on_next_task(self, *_): return 0
        def on_error(self, *_): calls.append("error")
        def release(self, _): calls.append("release")
    raw = abi.ArrowAsyncDeviceStreamHandler()
    abi.implement(raw, Methods())
    handler = AsyncHandler(abi.ctypes.addressof(raw))
    pid = os.fork()
    del handler
    if pid == 0:
        os._exit(len(calls))
    print(status(pid), calls)
    """
    )
    assert (done.returncode, done.stdout) == (0, "0 ['error', 'release']\n"), done.stderr
