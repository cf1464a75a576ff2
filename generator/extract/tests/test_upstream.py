"""Tests on the upstream headers of the pinned pyarrow wheel.

generator/tests/test_targets.py tests the layouts, for every target.
"""

from __future__ import annotations

import unittest

from extract import UPSTREAM, extract, extract_one, field, named, record, values

GUARDS = [
    "ARROW_C_DATA_INTERFACE",
    "ARROW_C_DEVICE_DATA_INTERFACE",
    "ARROW_C_STREAM_INTERFACE",
    "ARROW_C_DEVICE_STREAM_INTERFACE",
    "ARROW_C_ASYNC_STREAM_INTERFACE",
]


class ArrowAbi(unittest.TestCase):
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
