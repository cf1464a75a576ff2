"""The backends, the library that each runs on, and what can go wrong that is not one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Backend:
    name: str  # of the reference producer, "cuda_host"
    runtime: str  # of spec/runtimes.yaml, "cuda"
    folder: str  # with the library that can be made to fail, below build/lib
    library: str  # its file name


@dataclass(frozen=True)
class Special:
    title: str  # for people
    backend: str
    name: str  # of `fletching_faults special`
    folder: str | None = None  # instead of the backend's; "" for none
    environment: Mapping[str, str] = field(default_factory=dict)
    says: str = ""  # has to be in the text


_CUDA = ("cuda", "standin", "libcuda.so.1")
_HIP = ("hip", "standin", "libamdhip64.so.7")

BACKENDS = (
    Backend("cuda", *_CUDA),
    Backend("cuda_host", *_CUDA),
    Backend("cuda_managed", *_CUDA),
    Backend("rocm", *_HIP),
    Backend("rocm_host", *_HIP),
    Backend("opencl", "opencl", "interposers", "libOpenCL.so.1"),
    Backend("vulkan", "vulkan", "interposers", "libvulkan.so.1"),
)

_NO_DEVICE = {"FLETCHING_STANDIN_DEVICES": "0"}

SPECIALS = (
    Special("no library", "cuda", "absent", folder="", says="libcuda.so.1"),
    Special("no function", "cuda", "lacking", "standin-broken", says="has no cuStreamWaitEvent"),
    Special("no function", "rocm", "lacking", "standin-broken", says="has no hipStreamWaitEvent"),
    Special("no device", "cuda", "absent", None, _NO_DEVICE, "CUDA_ERROR_NO_DEVICE"),
    Special("no device", "rocm", "absent", None, _NO_DEVICE, "hipErrorInvalidDevice"),
    Special("wrong device id", "cuda", "wrong-device", says="not a CUDA device ordinal"),
    Special("wrong device id", "rocm", "wrong-device", says="the event itself knows its device"),
    Special("device lost in a stream", "cuda", "lost-device", says="LAUNCH_FAILED"),
    Special("device lost in a stream", "cuda_host", "lost-device", says="LAUNCH_FAILED"),
    Special("device lost in a stream", "rocm", "lost-device", says="LaunchFailure"),
)


# A report asks every runtime. Mesa's driver of Vulkan keeps memory for each instance, which is not
# ours to count, so that only the backend that needs it has one, and there no leak is looked for.
_NO_VULKAN_DRIVER = {"VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"}
_DRIVERS_OWN_MEMORY = {"ASAN_OPTIONS": "detect_leaks=0"}


def environment(
    libraries: Path, backend: Backend, folder: str, extra: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a process that takes the vendor's libraries from one folder."""
    drivers = _DRIVERS_OWN_MEMORY if backend.runtime == "vulkan" else _NO_VULKAN_DRIVER
    path = [str(libraries / folder)] if folder else []
    rest = os.environ.get("LD_LIBRARY_PATH")
    if rest:
        path.append(rest)
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(path), **drivers, **extra}
