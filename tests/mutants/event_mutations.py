"""Wrong specs of events: the meaning of sync_event, the runtime of an event, the query results.

The ABI texts do not contain these facts. The vendors' libraries do: real ones for OpenCL and
Vulkan, stand-ins for CUDA and HIP. Events of other runtimes cannot be tested on this machine.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from mutations import EVENTS, Documents, Entry, Mutant

# Each runtime, with an error result of its functions.
_ERRORS = {
    "cuda": "CUDA_ERROR_INVALID_HANDLE",
    "hip": "hipErrorInvalidHandle",
    "opencl": "CL_INVALID_CONTEXT",
    "vulkan": "VK_ERROR_DEVICE_LOST",
}


def derive(good: Documents) -> list[Mutant]:
    """All mutants, in a fixed order."""
    makers = (_wrong_pointers, _wrong_runtimes, _wrong_queries)
    return [mutant for maker in makers for mutant in maker(good)]


def _wrong_pointers(good: Documents) -> Iterator[Mutant]:
    for device in _devices(good):
        name = device["name"]
        as_object = {**device["event"], "pointer": "object"}
        yield _with_device(good, f"event:{name}-object", name, {"event": as_object})
        no_event = {"pointer": "none", "note": "currently_unknown"}
        yield _with_device(good, f"event:{name}-none", name, {"event": no_event})


def _wrong_runtimes(good: Documents) -> Iterator[Mutant]:
    for device in _devices(good):
        name, own = device["name"], device["runtime"]
        for other in _ERRORS:
            if other != own:
                # Drops names that exist only in the device's runtime: the spec would be invalid.
                are = device["buffers"]["are"]
                buffers = {"are": "device_address" if are == "handle" else are, "doc": "Data."}
                changed = {"runtime": other, "handles": {"needed": []}, "buffers": buffers}
                yield _with_device(good, f"runtime:{name}-{other}", name, changed)


def _wrong_queries(good: Documents) -> Iterator[Mutant]:
    for runtime, error in _ERRORS.items():
        query = _query(good, runtime)
        swapped = {"done": query["pending"], "pending": query["done"]}
        yield _with_query(good, f"query:{runtime}-swapped", runtime, swapped)
        failed = {"done": query["done"], "pending": [error]}
        yield _with_query(good, f"query:{runtime}-never-pending", runtime, failed)


def _devices(good: Documents) -> Iterator[Entry]:
    """The devices whose events come from one of the runtimes."""
    for device in good["devices"]["devices"]:
        if device.get("runtime") in _ERRORS:
            yield device


def _with_device(good: Documents, id_: str, name: str, changed: Entry) -> Mutant:
    documents = copy.deepcopy(good)
    next(device for device in _devices(documents) if device["name"] == name).update(changed)
    return Mutant(id_, (f"{name}.event",), documents, EVENTS)


def _with_query(good: Documents, id_: str, runtime: str, changed: Entry) -> Mutant:
    documents = copy.deepcopy(good)
    query = _query(documents, runtime)
    query.pop("pending_above", None)
    query.update(changed)
    about = (f"{device['name']}.event" for device in _devices(good) if device["runtime"] == runtime)
    return Mutant(id_, tuple(about), documents, EVENTS)


def _query(documents: Documents, name: str) -> Entry:
    runtimes: list[Entry] = documents["runtimes"]["runtimes"]
    query: Entry = next(entry for entry in runtimes if entry["name"] == name)["query"]
    return query
