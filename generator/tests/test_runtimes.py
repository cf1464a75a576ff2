"""Tests that each mistake in the runtimes and the devices' memory is reported."""

from __future__ import annotations

import pytest
from conftest import Scratch

from fletching_generator.spec.load import load_spec
from fletching_generator.spec.model import Spec

R = "runtimes.yaml"
D = "devices.yaml"

# file, old text, new text, expected error
SPOILED = {
    "unknown key": (
        R,
        "    title: Vulkan\n",
        "    title: Vulkan\n    colour: red\n",
        r"runtimes\[3\]\.colour: unknown key 'colour'",
    ),
    "missing operation": (
        R,
        "      query: {by: call, functions: [hipEventQuery]}\n",
        "",
        r"runtimes\[1\]\.operations: 'query' is missing",
    ),
    "duplicate runtime": (
        R,
        "- name: hip\n",
        "- name: cuda\n",
        r"runtimes\[1\]\.name: 'cuda' is a duplicate",
    ),
    "undeclared type": (
        R,
        'callback(event: CUevent) -> CUresult"\n        doc: Returns whether',
        'callback(event: CUevnt) -> CUresult"\n        doc: Returns whether',
        r"functions\[\d+\]\.type: type 'CUevnt' is not defined",
    ),
    "undeclared constant": (
        R,
        "pending: [VK_EVENT_RESET]",
        "pending: [VK_EVENT_REST]",
        r"query\.pending: constant 'VK_EVENT_REST' is not declared; hint: add it to 'constants'",
    ),
    "undeclared function": (
        R,
        "functions: [cuStreamWaitEvent]",
        "functions: [cuStreamWait]",
        r"operations\.wait_on\.functions: function 'cuStreamWait' is not declared",
    ),
    "duplicate constant": (
        R,
        "{name: CL_RUNNING, value: 1",
        "{name: CL_QUEUED, value: 1",
        r"constants\[4\]\.name: 'CL_QUEUED' is a duplicate; hint: remove one",
    ),
    "constant of an unknown type": (
        R,
        "{name: CL_RUNNING, value: 1, type: cl_int,",
        "{name: CL_RUNNING, value: 1, type: cl_in,",
        r"constants\[2\]\.type: type 'cl_in' is not defined",
    ),
    "constant that is a struct": (
        R,
        "{name: VK_ACCESS_MEMORY_READ_BIT, value: 0x8000, type: VkFlags,",
        "{name: VK_ACCESS_MEMORY_READ_BIT, value: 0x8000, type: VkMemoryBarrier,",
        r"type: 'VkMemoryBarrier' is neither an integer nor a handle; hint: name one",
    ),
    "duplicate symbol": (
        R,
        "symbol: cuMemFree_v2",
        "symbol: cuMemAlloc_v2",
        r"symbol 'cuMemAlloc_v2' is already the symbol of cuMemAlloc of 'cuda'",
    ),
    "no function": (
        R,
        'type: "callback(flags: uint32) -> hipError_t"',
        "type: hipError_t",
        r"functions\[0\]\.type: 'hipError_t' is not a function",
    ),
    "two arguments of one name": (
        R,
        "callback(device: VkDevice, name: const char*) -> any_function",
        "callback(name: VkDevice, name: const char*) -> any_function",
        r"two arguments have the same name",
    ),
    "struct by value": (
        R,
        "info: const VkEventCreateInfo*",
        "info: VkEventCreateInfo",
        r"a struct is passed by value in 'vkCreateEvent'; hint: use a pointer",
    ),
    "integer without a width": (
        R,
        "{name: CUdevice, kind: integer, type: int32,",
        "{name: CUdevice, kind: integer,",
        r"types\[1\]: kind 'integer' and 'type' do not fit",
    ),
    "no integer": (
        R,
        "{name: CUdevice, kind: integer, type: int32,",
        "{name: CUdevice, kind: integer, type: int33,",
        r"types\[1\]\.type: 'int33' is not an integer; hint: use one of int8",
    ),
    "fields of a handle": (
        R,
        "      - name: VkMemoryBarrier\n        kind: struct",
        "      - name: VkMemoryBarrier\n        kind: handle",
        r"fields: only a struct has fields",
    ),
    "operation without functions": (
        R,
        "host_wait: {by: call, functions: [clWaitForEvents], note",
        "host_wait: {by: call, note",
        r"operations\.host_wait: by 'call' and 'functions' do not fit",
    ),
    "operation without a reason": (
        R,
        "create: {by: none, note: A queue returns an event for each command.}",
        "create: {by: none}",
        r"operations\.create: by 'none' without a reason; hint: say why and how in 'note'",
    ),
    "system without a library": (
        R,
        "      note: NVIDIA has no driver for macOS.\n",
        "",
        r"libraries\.macos: no library for macos; hint: name a file, or say why in 'note'",
    ),
    "undeclared handle": (
        R,
        "handles: {event: VkEvent,",
        "handles: {event: VkEvnt,",
        r"handles\.event: type 'VkEvnt' is not declared",
    ),
    "event that is not a handle": (
        R,
        "handles: {event: VkEvent,",
        "handles: {event: VkFlags,",
        r"handles\.event: 'VkFlags' is not a handle",
    ),
    "status of a C++ library": (
        R,
        "    api: cpp\n",
        "    api: cpp\n    read_from: nothing\n",
        r"runtimes\[4\]\.read_from: api 'cpp' and 'read_from' do not fit; hint: remove it",
    ),
    "C without functions": (
        R,
        "    api: cpp\n",
        "    api: c\n",
        r"api 'c' and 'functions' do not fit",
    ),
    "query of another function": (
        R,
        "query: {function: vkGetEventStatus,",
        "query: {function: vkSetEvent,",
        r"query\.function: is not what the operation 'query' calls",
    ),
    "query through nothing": (
        R,
        "value: param_value\n",
        "value: param_valu\n",
        r"query\.value: 'param_valu' is not an argument that points anywhere",
    ),
    "query without a selector": (
        R,
        "      selector: CL_EVENT_COMMAND_EXECUTION_STATUS\n",
        "",
        r"query\.value: 'param_value' and 'selector' do not fit",
    ),
    "done and pending": (
        R,
        "pending: [VK_EVENT_RESET]",
        "pending: [VK_EVENT_SET]",
        r"query\.pending: VK_EVENT_SET is done and pending",
    ),
    "lost and pending": (
        R,
        "lost: [hipErrorDeinitialized,",
        "lost: [hipErrorNotReady,",
        r"query\.lost: hipErrorNotReady is lost, and done or pending; hint: remove one",
    ),
    "newer than the header and in every library": (
        R,
        "        optional: ROCm 6.4 and later\n",
        "",
        r"newer: a library as old as the header lacks the function; hint: add 'optional:'",
    ),
    "nothing selects per thread": (
        R,
        ", per_thread: CUDA_API_PER_THREAD_DEFAULT_STREAM",
        "",
        r"per_thread: no macro selects the per-thread functions",
    ),
    "device of no runtime": (
        D,
        "runtime: vulkan\n",
        "runtime: vulcan\n",
        r"devices\[4\]\.runtime: runtime 'vulcan' is not declared; hint: add it to",
    ),
    "buffers without a type": (
        D,
        "      type: cl_mem\n",
        "",
        r"devices\[3\]\.buffers: 'handle' does not fit type None",
    ),
    "buffers of an unknown type": (
        D,
        "      type: cl_mem\n",
        "      type: cl_men\n",
        r"devices\[3\]\.buffers\.type: type 'cl_men' is not declared",
    ),
    "accessible from nothing": (
        D,
        "accessible_from: {devices: [cpu, rocm]}",
        "accessible_from: {devices: []}",
        r"accessible_from: needs either devices or a reason; hint: list devices, or say in",
    ),
    "accessible from an unknown device": (
        D,
        "accessible_from: {devices: [cpu, rocm]}",
        "accessible_from: {devices: [cpu, rock]}",
        r"accessible_from\.devices\[1\]: device 'rock' is not defined",
    ),
    "accessible from memory": (
        D,
        "accessible_from: {devices: [cpu, rocm]}",
        "accessible_from: {devices: [cpu, cuda_host]}",
        r"accessible_from\.devices\[1\]: 'cuda_host' is memory only: it does not list itself",
    ),
    "accessible twice": (
        D,
        "accessible_from: {devices: [cpu, rocm]}",
        "accessible_from: {devices: [cpu, cpu]}",
        r"accessible_from\.devices\[1\]: 'cpu' is a duplicate",
    ),
    "host address that the host cannot read": (
        D,
        "accessible_from: {devices: [cpu, rocm]}",
        "accessible_from: {devices: [rocm]}",
        r"accessible_from: 'cpu' and buffers that are 'host_address' do not fit",
    ),
    "handle of no runtime": (
        D,
        "{name: VkPhysicalDevice, how",
        "{name: VkPhysical, how",
        r"handles\.needed\[1\]: type 'VkPhysical' is not declared; hint: add it to the types of",
    ),
    "handles known and not": (
        D,
        "{needed: [], unknown: No published text defines the handles of the DSP.}",
        "{needed: [{name: x, how: y}], unknown: No published text defines the handles of the DSP.}",
        r"handles: lists handles, and 'unknown' too",
    ),
}

HANDLE = 'event: {pointer: address_of_handle, type: "cudaEvent_t*"}'
OBJECT = 'event: {pointer: object, type: "sycl::event*"}'
FIRST = f"    {HANDLE}\n\n  - name: cuda_host"
EVENT = r"devices\[\d+\]\.event\."

# The event of a device: old text, new text, expected error.
EVENTS = {
    "object instead of a handle": (
        FIRST,
        FIRST.replace("address_of_handle", "object"),
        EVENT + r"pointer: 'object' does not fit the event of runtime 'cuda': CUevent, a handle; "
        "hint: write 'pointer: address_of_handle'",
    ),
    "none instead of a handle": (
        FIRST,
        "    event: {pointer: none}\n\n  - name: cuda_host",
        EVENT
        + r"type: 'none' is not a pointer to the event of runtime 'cuda'; hint: write CUevent\* or",
    ),
    "handle instead of an object": (
        OBJECT,
        OBJECT.replace("object", "address_of_handle"),
        EVENT + "pointer: 'address_of_handle' does not fit the event of runtime 'sycl': sycl::e",
    ),
    "one level more": (
        FIRST,
        FIRST.replace("_t*", "_t**"),
        EVENT
        + r"type: 'cudaEvent_t\*\*' is not a pointer to the event of runtime 'cuda'; hint: write ",
    ),
    "no pointer": (
        '"VkEvent*"',
        '"VkEvent"',
        EVENT
        + r"type: 'VkEvent' is not a pointer to the event of runtime 'vulkan'; hint: write VkEv",
    ),
    "event of another runtime": (
        '"cl_event*"',
        '"cudaEvent_t*"',
        EVENT
        + r"type: 'cudaEvent_t\*' is not a pointer to the event of runtime 'opencl'; hint: write",
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_event_must_match_runtime(name: str, scratch: Scratch) -> None:
    scratch.refuses(D, *EVENTS[name])
    load_spec(scratch.root, events=False)  # as for deliberately wrong specs


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_spec_reports_place_and_hint(name: str, scratch: Scratch) -> None:
    scratch.refuses(*SPOILED[name])


def test_symbols_and_signatures(spec: Spec) -> None:
    cuda = next(runtime for runtime in spec.runtimes if runtime.name == "cuda")
    functions = {function.name: function for function in cuda.functions}
    assert functions["cuCtxPushCurrent"].symbol == "cuCtxPushCurrent_v2"
    assert functions["cuEventQuery"].symbol == "cuEventQuery"
    assert functions["cuStreamWaitValue32"].per_thread == "cuStreamWaitValue32_v2_ptsz"
    names = [argument.name for argument in functions["cuStreamWaitEvent"].type.arguments]
    assert names == ["stream", "event", "flags"]


def test_event_states(spec: Spec) -> None:
    """There are three states: done, pending, and an error for any other value."""
    states = {
        runtime.name: (
            [constant.value for constant in runtime.query.done],
            [constant.value for constant in runtime.query.pending],
        )
        for runtime in spec.runtimes
        if runtime.query is not None
    }
    assert states == {
        "cuda": ([0], [600]),
        "hip": ([0], [600]),
        "opencl": ([0], [1, 2, 3]),
        "vulkan": ([3], [4]),
    }


def test_wait_operations(spec: Spec) -> None:
    ways = {r.name: (r.operation("host_wait").by, r.operation("wait_on").by) for r in spec.runtimes}
    assert ways == {
        "cuda": ("call", "call"),
        "hip": ("call", "call"),
        "opencl": ("call", "call"),
        "vulkan": ("polling", "command_buffer"),
        "sycl": ("waiter", "waiter"),
        "metal": ("none", "waiter"),
    }
