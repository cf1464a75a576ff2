"""Finds out which CUDA driver calls return and which wait while a stream is behind a shut gate.

    python3 probe.py [--seconds S] [--only NAME]... [--json FILE] [--write-docs]

Needs only the driver and Python. Each call runs in a separate process, in which another thread
opens the gate after some seconds: a call that has not returned by then `blocks`. Each call runs
twice: warm, after every kind of copy and a launch have run once, and cold. --json writes the
results, and --write-docs docs/measured/driver-<model>.md. The stand-in can be probed too, but its
results are not written to the docs. Its `driver` mode is compared with the written results
(test_probe.py, ../standin/README.md).
Exit codes: 0 probed, 1 a call had an unknown outcome, 2 there is no device.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BYTES = 4096
NON_BLOCKING = 1
NOT_READY = 600
BLOCKS, RETURNS = "blocks", "ok"

# An empty kernel, as PTX that all current drivers can compile. The stand-in has a kernel with this
# name and needs a separate image format.
KERNEL = b"add"
PTX = b""".version 6.4
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data, .param .u64 n, .param .u64 value) { ret; }
"""
STANDIN_IMAGE = b"FLETCHING-STANDIN-IMAGE 1\nkernel add\n"


@dataclass(frozen=True)
class Answer:
    call: str
    warm: str
    cold: str


class DriverError(Exception):
    """A driver call failed."""


class Driver:
    """The driver on the first device, in its primary context, on this thread."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self.is_standin = hasattr(self._library, "FletchingStandinCalls")
        self("cuInit", ctypes.c_uint(0))
        count = ctypes.c_int()
        self("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise DriverError("the driver finds no device")

    def __call__(self, function: str, *arguments: object) -> int:
        code = int(getattr(self._library, function)(*arguments))
        if code not in (0, NOT_READY):
            raise DriverError(f"{function} failed with {code}")
        return code

    def enter(self) -> None:
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxPushCurrent_v2", context)

    def name(self) -> str:
        text = ctypes.create_string_buffer(256)
        self("cuDeviceGetName", text, 255, 0)
        return text.value.decode()

    def version(self) -> str:
        number = ctypes.c_int()
        self("cuDriverGetVersion", ctypes.byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def stream(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(made), ctypes.c_uint(NON_BLOCKING))
        return made

    def event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(made), ctypes.c_uint(2))
        return made

    def device(self, size: int = BYTES) -> int:
        made = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(size))
        return made.value

    def managed(self) -> int:
        made = ctypes.c_uint64()
        self("cuMemAllocManaged", ctypes.byref(made), ctypes.c_size_t(BYTES), ctypes.c_uint(1))
        return made.value

    def pinned(self) -> int:
        made = ctypes.c_void_p()
        flags = ctypes.c_uint(3)
        self("cuMemHostAlloc", ctypes.byref(made), ctypes.c_size_t(BYTES), flags)
        return made.value or 0

    def copy(self, to: int, source: int, stream: ctypes.c_void_p) -> None:
        size = ctypes.c_size_t(BYTES)
        self("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), size, stream)

    def fill(self, to: int, stream: ctypes.c_void_p) -> None:
        value, size = ctypes.c_ubyte(1), ctypes.c_size_t(BYTES)
        self("cuMemsetD8Async", ctypes.c_uint64(to), value, size, stream)

    def finish(self, stream: ctypes.c_void_p) -> None:
        self("cuStreamSynchronize", stream)

    def module(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        image = STANDIN_IMAGE if self.is_standin else PTX
        self("cuModuleLoadData", ctypes.byref(made), image)
        return made

    def kernel(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(made), self.module(), KERNEL)
        return made


class Scene:
    """Memory of every kind, and streams, one of them behind a gate."""

    def __init__(self, driver: Driver, warm: bool) -> None:
        self.driver = driver
        driver.enter()
        self.gated, self.free, self.idle = (driver.stream() for _ in range(3))
        self._pageable = ctypes.create_string_buffer(2 * BYTES)
        pageable = ctypes.addressof(self._pageable)
        self.memory = {
            "device": (driver.device(), driver.device()),
            "pinned": (driver.pinned(), driver.pinned()),
            "managed": (driver.managed(), driver.managed()),
            "pageable": (pageable, pageable + BYTES),
        }
        self.event = driver.event()
        self._word = driver.pinned()
        ctypes.memset(self._word, 0, 4)
        self.kernel = driver.kernel()
        if warm:
            self._warm_up()

    def _warm_up(self) -> None:
        for source in self.memory:
            for to in self.memory:
                self.driver.copy(self.memory[to][1], self.memory[source][0], self.free)
        self.driver.fill(self.memory["device"][0], self.free)
        launch(self)

    def shut(self) -> None:
        address = ctypes.c_uint64()
        self.driver(
            "cuMemHostGetDevicePointer_v2",
            ctypes.byref(address),
            ctypes.c_void_p(self._word),
            ctypes.c_uint(0),
        )
        value, equal = ctypes.c_uint32(1), ctypes.c_uint(1)
        self.driver("cuStreamWaitValue32_v2", self.gated, address, value, equal)
        self.driver("cuEventRecord", self.event, self.gated)

    def open(self) -> None:
        ctypes.c_uint32.from_address(self._word).value = 1


Probe = Callable[[Scene], object]


def free(kind: str) -> Probe:
    def work(scene: Scene) -> None:
        address = scene.memory[kind][0]
        if kind == "pinned":
            scene.driver("cuMemFreeHost", ctypes.c_void_p(address))
        else:
            scene.driver("cuMemFree_v2", ctypes.c_uint64(address))

    return work


def copy(source: str, to: str, gated: bool) -> Probe:
    """Copies on the gated stream, or on another stream and then waits for it."""

    def work(scene: Scene) -> None:
        stream = scene.gated if gated else scene.free
        scene.driver.copy(scene.memory[to][1], scene.memory[source][0], stream)
        if not gated:
            scene.driver.finish(stream)

    return work


def fill(scene: Scene) -> None:
    scene.driver.fill(scene.memory["device"][0], scene.free)
    scene.driver.finish(scene.free)


def start(scene: Scene, stream: ctypes.c_void_p) -> None:
    """Launches the empty kernel."""
    values = (ctypes.c_uint64(scene.memory["device"][0]), ctypes.c_uint64(0), ctypes.c_uint64(0))
    arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
    one, none = ctypes.c_uint(1), ctypes.c_uint(0)
    shape = (one,) * 6
    scene.driver("cuLaunchKernel", scene.kernel, *shape, none, stream, arguments, None)


def launch(scene: Scene) -> None:
    start(scene, scene.free)
    scene.driver.finish(scene.free)


def launches(count: int) -> Probe:
    """Enqueues behind the gate: a driver blocks when too much is pending on a stream."""

    def work(scene: Scene) -> None:
        for _ in range(count):
            start(scene, scene.gated)

    return work


def records(count: int) -> Probe:
    def work(scene: Scene) -> None:
        for _ in range(count):
            scene.driver("cuEventRecord", scene.event, scene.gated)

    return work


def query(scene: Scene) -> None:
    if scene.driver("cuEventQuery", scene.event) != NOT_READY:
        raise DriverError("the event behind the gate has happened")


def retain(scene: Scene) -> None:
    scene.driver("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_void_p()), 0)
    scene.driver("cuDevicePrimaryCtxRelease_v2", 0)


def attributes(scene: Scene) -> None:
    for attribute in (2, 3, 8, 9):
        for kind in ("device", "managed"):
            address = ctypes.c_uint64(scene.memory[kind][0])
            value = ctypes.byref(ctypes.c_uint64())
            scene.driver("cuPointerGetAttribute", value, attribute, address)


def use(scene: Scene, stream: ctypes.c_void_p) -> None:
    scene.driver.copy(scene.memory["pinned"][1], scene.memory["device"][0], stream)
    scene.driver.finish(stream)


def streams_at_once(count: int) -> Probe:
    def work(scene: Scene) -> None:
        streams = [scene.driver.stream() for _ in range(count)]
        for stream in streams:
            use(scene, stream)

    return work


def streams_in_turn(count: int) -> Probe:
    """Makes, uses and destroys streams one by one, to see whether queues are reused."""

    def work(scene: Scene) -> None:
        for _ in range(count):
            stream = scene.driver.stream()
            use(scene, stream)
            scene.driver("cuStreamDestroy_v2", stream)

    return work


def waiting_streams(count: int) -> Probe:
    """Streams that wait for the gate and streams that do not, as in the tests."""

    def work(scene: Scene) -> None:
        for _ in range(count):
            careful, careless = scene.driver.stream(), scene.driver.stream()
            scene.driver("cuStreamWaitEvent", careful, scene.event, ctypes.c_uint(0))
            use(scene, careless)

    return work


KINDS = ("device", "pinned", "managed", "pageable")
PROBES: dict[str, Probe] = {
    "allocate device": lambda scene: scene.driver.device(),
    "allocate device, 64 MiB": lambda scene: scene.driver.device(64 << 20),
    "allocate pinned": lambda scene: scene.driver.pinned(),
    "allocate managed": lambda scene: scene.driver.managed(),
    "free device": free("device"),
    "free pinned": free("pinned"),
    "free managed": free("managed"),
    "make a stream": lambda scene: scene.driver.stream(),
    "destroy an idle stream": lambda scene: scene.driver("cuStreamDestroy_v2", scene.idle),
    "destroy the stream behind the gate": lambda s: s.driver("cuStreamDestroy_v2", s.gated),
    "make an event": lambda scene: scene.driver.event(),
    "destroy the event behind the gate": lambda s: s.driver("cuEventDestroy_v2", s.event),
    "query the event behind the gate": query,
    "retain the primary context": retain,
    "ask for free memory": lambda scene: scene.driver(
        "cuMemGetInfo_v2", ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t())
    ),
    "ask about pointers": attributes,
    **{
        f"copy {source} to {to}, {'behind the gate' if gated else 'elsewhere'}": copy(
            source, to, gated
        )
        for source in KINDS
        for to in KINDS
        for gated in (True, False)
    },
    "fill, elsewhere": fill,
    "load a module": lambda scene: scene.driver.module(),
    "launch a kernel, elsewhere": launch,
    "wait for the legacy stream": lambda scene: scene.driver.finish(ctypes.c_void_p(1)),
    **{f"launch {count} kernels, behind the gate": launches(count) for count in (900, 1100, 5000)},
    **{f"record {count} events, behind the gate": records(count) for count in (900, 1100, 5000)},
    "40 streams at once": streams_at_once(40),
    "40 streams in turn": streams_in_turn(40),
    "40 streams beside 40 that wait": waiting_streams(40),
}


def ask(name: str, warm: bool, seconds: float) -> None:
    """Prints the result of the call and ends the process. Runs in a separate process."""
    driver = Driver()
    scene = Scene(driver, warm)
    scene.shut()
    opened = threading.Event()

    def open_late() -> None:
        opened.set()
        scene.open()

    timer = threading.Timer(seconds, open_late)
    timer.daemon = True
    timer.start()
    try:
        PROBES[name](scene)
        print(BLOCKS if opened.is_set() else RETURNS, flush=True)
    except DriverError as error:
        print(f"error: {error}", flush=True)
    scene.open()
    os._exit(0)


def answer(name: str, warm: bool, seconds: float) -> str:
    """Probes in a separate process. A call that never returns hangs even after the gate opens."""
    command = [sys.executable, __file__, "--ask", name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command + ["--warm"] * warm,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds + 20,
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    said = done.stderr.strip().splitlines()
    return done.stdout.strip() or f"ended with {done.returncode}: {said[-1] if said else ''}"


def ask_all(chosen: Sequence[str], seconds: float) -> list[Answer]:
    answers = []
    for name in chosen:
        answers.append(Answer(name, answer(name, True, seconds), answer(name, False, seconds)))
        print(f"{name:45} {answers[-1].warm:8} {answers[-1].cold}", flush=True)
    return answers


def facts() -> dict[str, str]:
    """The facts about the driver. Raises DriverError or OSError without a device."""
    driver = Driver()
    queues = os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "not set")
    loading = os.environ.get("CUDA_MODULE_LOADING", "not set")
    return {
        "status": "stand-in" if driver.is_standin else "real",
        "device": driver.name(),
        "CUDA of the driver": driver.version(),
        "CUDA_DEVICE_MAX_CONNECTIONS": queues,
        "CUDA_MODULE_LOADING": loading,
    }


def page(found: dict[str, str], answers: Sequence[Answer]) -> str:
    lines = [
        f"# A driver behind a shut gate: {found['device']}",
        "",
        "Which calls return while a stream is behind a shut gate, and which wait until it is open",
        "([what that is](../../tests/gpu/README.md#the-probe)). `tests/gpu/probe.py --write-docs` "
        "wrote this file.",
        "",
        "| call | warm | cold |",
        "|---|---|---|",
        *(f"| {each.call} | {each.warm} | {each.cold} |" for each in answers),
        "",
        *(f"- {name}: {text}" for name, text in found.items()),
        "",
    ]
    return "\n".join(lines)


def read_page(text: str) -> list[Answer]:
    """Reads the answers of a written page."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return [Answer(*row) for row in rows if row[0] in PROBES]


def too_lenient(real: Sequence[Answer], standin: Sequence[Answer]) -> list[str]:
    """The calls that wait on a driver but not on the stand-in. The reverse is intended."""
    found = {each.call: each for each in standin}
    return [
        f"{each.call}, {state}"
        for each in real
        for state in ("warm", "cold")
        if getattr(each, state) == BLOCKS and getattr(found[each.call], state) == RETURNS
    ]


def write_docs(found: dict[str, str], text: str) -> None:
    if found["status"] != "real":
        print("probe: nothing written: not a driver", file=sys.stderr)
        return
    model = re.sub(r"[^a-z0-9]+", "-", found["device"].lower()).strip("-")
    path = ROOT / "docs" / "measured" / f"driver-{model}.md"
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2, help="when the gate is opened")
    parser.add_argument("--only", metavar="NAME", action="append", default=[])
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.ask:
        ask(options.ask, options.warm, options.seconds)
    try:
        found = facts()
    except (DriverError, OSError) as error:
        print(f"probe: no CUDA device: {error}", file=sys.stderr)
        return 2
    names = [n for n in PROBES if not options.only or any(part in n for part in options.only)]
    answers = ask_all(names, options.seconds)
    if options.json:
        rows = [asdict(each) for each in answers]
        text = json.dumps({"facts": found, "answers": rows}, indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.write_docs:
        write_docs(found, page(found, answers))
    named = (RETURNS, BLOCKS)
    return 1 if any({each.warm, each.cold} - set(named) for each in answers) else 0


if __name__ == "__main__":
    sys.exit(main())
