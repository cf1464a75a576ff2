"""Exchanges DLPack and CUDA arrays with Python libraries on the GPU, in both directions.

peers.py LIBRARY [--package] [--only NAME]... prints facts and checks in the format of main.cpp as
they finish; gpu.py runs it. --package also passes everything through the Python package. A missing
library is absent, with the reason. A check that exceeds FLETCHING_GPU_CHECK_SECONDS fails and ends
the program. Exit codes: 0 nothing failed, 1 something failed, 2 no device or no such check,
3 a check hung.

If the other library orders by a stream, the gate is shut until its read is enqueued. If it waits on
the host or ignores the stream, the gate is opened before.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from package import Package, import_package
from peer_library import NEW, OLD, VALUES, Check, Library, PeerError, Source

HUNG = 3  # exit code after a hang, as in main.cpp


class AbsentError(Exception):
    """A check cannot run on this machine. The message is the reason."""


def require(condition: bool, what: str) -> None:
    if not condition:
        raise PeerError(what)


def require_new(values: Any) -> int:
    require(len(values) == VALUES, f"values: expected {VALUES}, got {len(values)}")
    wrong = [value for value in values if value != NEW]
    require(not wrong, f"{len(wrong)} values are not the new ones, the first is {wrong[:1]}")
    return VALUES


def from_source(library: Library, work: Callable[[Source], int]) -> int:
    """Runs `work` on a source. Everything made from the source must be destroyed on return."""
    source = library.source()
    try:
        compared = work(source)
    finally:
        source.open()  # unblocks waiters, such as a library that shuts down
    gc.collect()
    source.close()
    return compared


# --- Fletching itself, through Python capsules


def ours_dlpack(library: Library) -> int:
    def work(source: Source) -> int:
        source.open()
        return library.take_dlpack(source.tensor)

    return from_source(library, work)


def ours_untaken(library: Library) -> int:
    def work(source: Source) -> int:
        source.tensor.__dlpack__(stream=library.stream(), max_version=(1, 3))
        source.tensor.__dlpack__(stream=library.stream())
        return 2

    return from_source(library, work)


def ours_cuda_array(library: Library) -> int:
    def work(source: Source) -> int:
        source.open()
        return library.take_cuda_array(source.described)

    return from_source(library, work)


# --- apache-tvm-ffi: imports device tensors without reading them


def tvm_ffi_both_ways(library: Library) -> int:
    tvm_ffi = importlib.import_module("tvm_ffi")

    def work(source: Source) -> int:
        tensor = tvm_ffi.from_dlpack(source.tensor)
        require(tuple(tensor.shape) == (VALUES,), f"the shape is {tensor.shape}")
        source.finish()  # its __dlpack__ ignores the stream for ordering
        compared = library.take_dlpack(tensor)
        del tensor
        return compared

    return from_source(library, work)


# --- CuPy


def cupy_from_dlpack(library: Library) -> int:
    cupy = importlib.import_module("cupy")
    seen = cupy.zeros(
        VALUES, dtype=cupy.int32
    )  # allocated and kernels loaded before the gate is shut
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.copyto(seen, cupy.zeros_like(seen))
    cupy.cuda.Device().synchronize()

    def work(source: Source) -> int:
        with stream:
            taken = cupy.from_dlpack(source.tensor)
            seen.data.copy_from_device_async(taken.data, seen.nbytes, stream)
        require(not stream.done, "a read behind from_dlpack is done, and the gate is shut")
        source.open()
        stream.synchronize()
        del taken
        return require_new(seen.get().tolist())

    return from_source(library, work)


def cupy_to_dlpack(library: Library) -> int:
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        array = cupy.full(VALUES, OLD, dtype=cupy.int32)
        array.fill(NEW)
        return library.take_dlpack(array)


def cupy_from_cuda_array(library: Library) -> int:
    cupy = importlib.import_module("cupy")

    def work(source: Source) -> int:
        source.open()
        taken = cupy.asarray(source.described)  # waits for the stream on the host
        return require_new(taken.get().tolist())

    return from_source(library, work)


def cupy_to_cuda_array(library: Library) -> int:
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        array = cupy.full(VALUES, OLD, dtype=cupy.int32)
        array.fill(NEW)
        return library.take_cuda_array(array)


# --- PyTorch


def torch_from_dlpack(library: Library) -> int:
    torch = importlib.import_module("torch")
    seen = torch.zeros(VALUES, dtype=torch.int32, device="cuda")
    seen.copy_(torch.ones_like(seen))  # loads the kernels
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()

    def work(source: Source) -> int:
        with torch.cuda.stream(stream):
            taken = torch.from_dlpack(source.tensor)
            seen.copy_(taken, non_blocking=True)
        require(not stream.query(), "a read behind from_dlpack is done, and the gate is shut")
        source.open()
        stream.synchronize()
        del taken
        return require_new(seen.cpu().tolist())

    return from_source(library, work)


def torch_to_dlpack(library: Library) -> int:
    torch = importlib.import_module("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = torch.full((VALUES,), OLD, dtype=torch.int32, device="cuda")
        tensor.fill_(NEW)
        return library.take_dlpack(tensor)


def torch_from_cuda_array(library: Library) -> int:
    torch = importlib.import_module("torch")

    def work(source: Source) -> int:
        source.finish()  # torch ignores the stream
        taken = torch.as_tensor(source.described, device="cuda")
        values = taken.cpu().tolist()
        del taken
        return require_new(values)

    return from_source(library, work)


def torch_to_cuda_array(library: Library) -> int:
    torch = importlib.import_module("torch")
    tensor = torch.full((VALUES,), NEW, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()  # torch gives no stream
    return library.take_cuda_array(tensor)


# --- Numba


def numba_from_cuda_array(library: Library) -> int:
    cuda = importlib.import_module("numba.cuda")

    def work(source: Source) -> int:
        source.open()
        taken = cuda.as_cuda_array(source.described)  # waits for the stream on the host
        return require_new(taken.copy_to_host().tolist())

    return from_source(library, work)


def numba_to_cuda_array(library: Library) -> int:
    cuda = importlib.import_module("numba.cuda")
    numpy = importlib.import_module("numpy")
    stream = cuda.stream()
    array = cuda.to_device(numpy.full(VALUES, NEW, dtype=numpy.int32), stream=stream)
    return library.take_cuda_array(array)


# --- JAX


def jax_from_dlpack(library: Library) -> int:
    jax = importlib.import_module("jax")

    def work(source: Source) -> int:
        source.open()  # jax waits on the host
        taken = jax.dlpack.from_dlpack(source.tensor)
        return require_new(taken.tolist())

    return from_source(library, work)


def jax_to_dlpack(library: Library) -> int:
    jax = importlib.import_module("jax")
    array = jax.numpy.full(VALUES, NEW, dtype="int32")
    return library.take_dlpack(array)


def jax_to_cuda_array(library: Library) -> int:
    jax = importlib.import_module("jax")
    array = jax.numpy.full(VALUES, NEW, dtype="int32")
    array.block_until_ready()  # jax gives no stream
    return library.take_cuda_array(array)


# --- cuda-core


def cuda_core_both_ways(library: Library) -> int:
    utils = importlib.import_module("cuda.core.utils")

    def work(source: Source) -> int:
        view = utils.StridedMemoryView.from_dlpack(source.tensor, stream_ptr=library.stream())
        require(view.shape == (VALUES,), f"the shape is {view.shape}")
        source.finish()  # its __dlpack__ ignores the stream for ordering
        compared = library.take_dlpack(view)
        del view
        return compared

    return from_source(library, work)


def cuda_core_from_cuda_array(library: Library) -> int:
    utils = importlib.import_module("cuda.core.utils")

    def work(source: Source) -> int:
        described: Any = source.described
        pointer = described.__cuda_array_interface__["data"][0]
        view = utils.StridedMemoryView.from_cuda_array_interface(
            described, stream_ptr=library.stream()
        )
        require((view.ptr, view.shape) == (pointer, (VALUES,)), f"the view is {view}")
        source.finish()
        return VALUES

    return from_source(library, work)


# Library, title, check, and whether it needs a real device.
CHECKS: tuple[tuple[str, str, Check, bool], ...] = (
    ("ours", "DLPack", ours_dlpack, False),
    ("ours", "DLPack, not taken", ours_untaken, False),
    ("ours", "CUDA Array Interface", ours_cuda_array, False),
    ("tvm_ffi", "DLPack both ways", tvm_ffi_both_ways, False),
    ("cupy", "DLPack out", cupy_from_dlpack, True),
    ("cupy", "DLPack in", cupy_to_dlpack, True),
    ("cupy", "CUDA Array Interface out", cupy_from_cuda_array, True),
    ("cupy", "CUDA Array Interface in", cupy_to_cuda_array, True),
    ("torch", "DLPack out", torch_from_dlpack, True),
    ("torch", "DLPack in", torch_to_dlpack, True),
    ("torch", "CUDA Array Interface out", torch_from_cuda_array, True),
    ("torch", "CUDA Array Interface in", torch_to_cuda_array, True),
    ("numba", "CUDA Array Interface out", numba_from_cuda_array, True),
    ("numba", "CUDA Array Interface in", numba_to_cuda_array, True),
    ("jax", "DLPack out", jax_from_dlpack, True),
    ("jax", "DLPack in", jax_to_dlpack, True),
    ("jax", "CUDA Array Interface in", jax_to_cuda_array, True),
    ("cuda.core", "DLPack both ways", cuda_core_both_ways, False),
    ("cuda.core", "CUDA Array Interface out", cuda_core_from_cuda_array, True),
)


def find(name: str) -> str:
    """The version of a library. Raises AbsentError with the import error."""
    try:
        return str(importlib.import_module(name).__version__)
    except ImportError as error:
        raise AbsentError(f"import {name}: {error}") from None


def run(library: Library, status: str, name: str, check: Check, real: bool) -> tuple[str, int, str]:
    """The verdict, the number of compared values, and the reason."""
    try:
        if name != "ours":
            find(name)
        if real and status != "real":
            raise AbsentError(f"{name} needs a device: this is the {status}")
        compared = check(library)
        require(compared > 0, "nothing was compared")
        return "ok", compared, ""
    except AbsentError as error:
        return "absent", 0, str(error)
    except Exception as error:
        return "FAILED", 0, f"{type(error).__name__}: {error}"


def print_versions() -> None:
    for name in sorted({name for name, *_ in CHECKS} - {"ours"}):
        try:
            print(f"fact\t{name}\t{find(name)}")
        except AbsentError:
            print(f"fact\t{name}\tabsent")


def watchdog(title: str) -> threading.Timer:
    """A started timer that ends the program: a thread in a driver cannot be stopped."""
    limit = float(os.environ.get("FLETCHING_GPU_CHECK_SECONDS") or 20)

    def end() -> None:
        print(f"check\t{title}\tFAILED\t0\thangs: did not end in {limit:g} s", flush=True)
        os._exit(HUNG)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()
    return timer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--only", metavar="NAME", action="append", default=[])
    options = parser.parse_args()
    before = "package, " if options.package else ""
    chosen = [
        (f"{before}{name}: {what}", name, check, real)
        for name, what, check, real in CHECKS
        if not options.only or any(part in f"{before}{name}: {what}" for part in options.only)
    ]
    if not chosen:
        print("peers.py: --only: no check has such a name", file=sys.stderr)
        return 2
    library = Package(options.library) if options.package else Library(options.library)
    if isinstance(library, Package):
        try:
            library.package = import_package()
        except ImportError as error:
            reason = f"import fletching: {error}; hint: install its wheel"
            print("\n".join(f"check\t{title}\tabsent\t0\t{reason}" for title, *_ in chosen))
            return 0
    try:
        status = library.status()
    except PeerError as error:
        print(error, file=sys.stderr)
        return 2
    print_versions()
    failed = 0
    for title, name, check, real in chosen:
        print(f"{title} ...", file=sys.stderr, flush=True)
        timer = watchdog(title)
        verdict, compared, reason = run(library, status, name, check, real)
        timer.cancel()
        line = " ".join(reason.split())
        print(f"check\t{title}\t{verdict}\t{compared}\t{line}", flush=True)
        failed += verdict == "FAILED"
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
