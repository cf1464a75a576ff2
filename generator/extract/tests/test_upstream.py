"""Tests on the upstream headers of the pinned pyarrow wheel, for every layout class."""

from __future__ import annotations

import unittest

from extract import UPSTREAM, Facts, extract, extract_one, field, named, record, values

# size and alignment with 64-bit pointers; 32-bit, int64 aligned to 8; 32-bit, int64 aligned to 4
SIZES = {
    "ArrowSchema": ((72, 8), (48, 8), (44, 4)),
    "ArrowArray": ((80, 8), (64, 8), (60, 4)),
    "ArrowDeviceArray": ((128, 8), (104, 8), (100, 4)),
    "ArrowArrayStream": ((40, 8), (20, 4), (20, 4)),
    "ArrowDeviceArrayStream": ((48, 8), (24, 4), (24, 4)),
    "ArrowAsyncTask": ((16, 8), (8, 4), (8, 4)),
    "ArrowAsyncProducer": ((40, 8), (20, 4), (20, 4)),
    "ArrowAsyncDeviceStreamHandler": ((48, 8), (24, 4), (24, 4)),
}
DEVICE_ARRAY_OFFSETS = ((0, 80, 88, 96, 104), (0, 64, 72, 76, 80), (0, 60, 68, 72, 76))
LAYOUT_CLASS = {
    "x86_64-linux-gnu": 0,
    "aarch64-linux-gnu": 0,
    "aarch64_be-linux-gnu": 0,
    "arm64-apple-macosx14": 0,
    "x86_64-apple-macosx12": 0,
    "x86_64-windows-msvc": 0,
    "x86_64-w64-windows-gnu": 0,
    "aarch64-windows-msvc": 0,
    "powerpc64le-linux-gnu": 0,
    "powerpc64-linux-gnu": 0,
    "s390x-linux-gnu": 0,
    "riscv64-linux-gnu": 0,
    "loongarch64-linux-gnu": 0,
    "mips64el-linux-gnuabi64": 0,
    "armv7-linux-gnueabihf": 1,
    "wasm32-unknown-unknown": 1,
    "powerpc-linux-gnu": 1,
    "mips-linux-gnu": 1,
    "riscv32-linux-gnu": 1,
    "x86_64-linux-gnux32": 1,
    "i686-windows-msvc": 1,
    "i686-linux-gnu": 2,
    "i386-freebsd": 2,
}
TARGETS = [word for target in LAYOUT_CLASS for word in ("--target", target)]
GUARDS = [
    "ARROW_C_DATA_INTERFACE",
    "ARROW_C_DEVICE_DATA_INTERFACE",
    "ARROW_C_STREAM_INTERFACE",
    "ARROW_C_DEVICE_STREAM_INTERFACE",
    "ARROW_C_ASYNC_STREAM_INTERFACE",
]


def _size(facts: Facts, name: str) -> tuple[int, int]:
    found = record(facts, name)
    return found["size"], found["align"]


class ArrowAbi(unittest.TestCase):
    def test_layouts(self) -> None:
        runs = extract(*TARGETS, UPSTREAM / "abi.h")
        self.assertEqual(len(runs), 2 * len(LAYOUT_CLASS))
        for facts in runs:
            with self.subTest(language=facts["language"], target=facts["target"]):
                self.assertEqual((facts["diagnostics"], facts["error_count"]), ([], 0))
                layout = LAYOUT_CLASS[facts["target"]]
                self.assertEqual(
                    {name: _size(facts, name) for name in SIZES},
                    {name: sizes[layout] for name, sizes in SIZES.items()},
                )
                offsets = [f["offset"] for f in record(facts, "ArrowDeviceArray")["fields"]]
                self.assertEqual(tuple(offsets), DEVICE_ARRAY_OFFSETS[layout])

    def test_guards(self) -> None:
        for facts in extract(UPSTREAM / "abi.h", "--", "-DARROW_C_STREAM_INTERFACE"):
            self.assertEqual([g["macro"] for g in facts["guards"]], GUARDS)
            hidden = [g["macro"] for g in facts["guards"] if not g["taken"]]
            self.assertEqual(hidden, ["ARROW_C_STREAM_INTERFACE"])
            self.assertNotIn(
                "ArrowArrayStream", [r["name"] for r in facts["records"] if r["complete"]]
            )

    def test_devices(self) -> None:
        header = UPSTREAM / "abi.h"
        devices = {
            name: value
            for name, value in values(extract_one("c", header)["macros"]).items()
            if name.startswith("ARROW_DEVICE_")
        }
        self.assertEqual(sorted(devices.values()), [1, 2, 3, 4, *range(7, 17)])
        hidden = extract_one("c", header, "--", "-DARROW_C_DEVICE_DATA_INTERFACE")
        skipped = values(hidden["skipped_macros"])
        self.assertEqual({k: v for k, v in skipped.items() if v is not None}, devices)

    def test_types(self) -> None:
        for facts in extract(UPSTREAM / "abi.h"):
            spelled = {
                f["name"]: f["canonical"] for f in record(facts, "ArrowDeviceArray")["fields"]
            }
            self.assertEqual(
                spelled,
                {
                    "array": "ArrowArray",
                    "device_id": "int64",
                    "device_type": "ArrowDeviceType",
                    "sync_event": "void*",
                    "reserved": "int64[3]",
                },
            )
            self.assertEqual(named(facts["typedefs"], "ArrowDeviceType")["type"], "int32")
            self.assertEqual(field(facts, "ArrowArray.buffers")["canonical"], "const void**")
            request = field(facts, "ArrowAsyncProducer.request")
            self.assertEqual(request["canonical"], "callback(ArrowAsyncProducer*, int64) -> void")
            self.assertEqual([a["name"] for a in request["callback"]["arguments"]], ["self", "n"])

    def test_helpers_include_the_structs(self) -> None:
        for facts in extract(UPSTREAM / "helpers.h", "--", "-I", UPSTREAM.parent.parent):
            self.assertEqual(facts["error_count"], 0, facts["diagnostics"])
            self.assertEqual(record(facts, "ArrowArray")["file"], str(UPSTREAM / "abi.h"))


class Dlpack(unittest.TestCase):
    def test_layouts(self) -> None:
        targets = ("--target", "x86_64-linux-gnu", "--target", "x86_64-windows-msvc")
        for facts in extract(*targets, UPSTREAM / "dlpack_abi.h"):
            with self.subTest(language=facts["language"], target=facts["target"]):
                self.assertEqual((facts["diagnostics"], facts["error_count"]), ([], 0))
                sizes = {
                    "DLDevice": (8, 4),
                    "DLDataType": (4, 2),
                    "DLTensor": (48, 8),
                    "DLManagedTensor": (64, 8),
                    "DLManagedTensorVersioned": (80, 8),
                }
                self.assertEqual({name: _size(facts, name) for name in sizes}, sizes)

    def test_device_type(self) -> None:
        targets = ("--target", "x86_64-linux-gnu", "--target", "x86_64-windows-msvc")
        kinds = {}
        for facts in extract(*targets, UPSTREAM / "dlpack_abi.h"):
            enum = named(facts["enums"], "DLDeviceType")
            kinds[facts["language"], facts["target"]] = (enum["underlying"], enum["fixed"])
            devices = values(enum["enumerators"])
            self.assertEqual(
                (devices["kDLCPU"], devices["kDLMAIA"], devices["kDLTrn"]), (1, 17, 18)
            )
        self.assertEqual(
            kinds,
            {
                ("c", "x86_64-linux-gnu"): ("unsigned int", False),
                ("c", "x86_64-windows-msvc"): ("int", False),
                ("c++", "x86_64-linux-gnu"): ("int", True),
                ("c++", "x86_64-windows-msvc"): ("int", True),
            },
        )

    def test_flags(self) -> None:
        macros = values(extract_one("c", UPSTREAM / "dlpack_abi.h")["macros"])
        flags = {k: v for k, v in macros.items() if k.startswith("DLPACK_FLAG_")}
        self.assertEqual(sorted(flags.values()), [1, 2, 4])
        self.assertEqual((macros["DLPACK_MAJOR_VERSION"], macros["DLPACK_MINOR_VERSION"]), (1, 3))


if __name__ == "__main__":
    unittest.main()
