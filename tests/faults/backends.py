"""The backends, their vendor libraries, and the failures that are not a single failed call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Backend:
    name: str  # in the reference producer, such as "cuda_host"
    runtime: str  # in spec/runtimes.yaml, such as "cuda"
    folder: str  # below build/lib, with the library that can be made to fail
    library: str  # file name of that library


@dataclass(frozen=True)
class Special:
    title: str  # for the report
    backend: str
    name: str  # argument of `fletching_faults special`
    folder: str | None = None  # replaces the backend's folder; "" for none
    environment: Mapping[str, str] = field(default_factory=dict)
    says: str = ""  # expected part of the text


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


# A report queries every runtime, and Mesa's Vulkan driver keeps memory for each instance. Only the
# backend that needs Vulkan gets a driver, and leak detection is off there.
_NO_VULKAN_DRIVER = {"VK_DRIVER_FILES": "/none", "VK_ICD_FILENAMES": "/none"}
_DRIVERS_OWN_MEMORY = {"ASAN_OPTIONS": "detect_leaks=0"}


def environment(
    libraries: Path, backend: Backend, folder: str, extra: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a process that loads the vendor libraries from one folder."""
    drivers = _DRIVERS_OWN_MEMORY if backend.runtime == "vulkan" else _NO_VULKAN_DRIVER
    path = [str(libraries / folder)] if folder else []
    rest = os.environ.get("LD_LIBRARY_PATH")
    if rest:
        path.append(rest)
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(path), **drivers, **extra}
