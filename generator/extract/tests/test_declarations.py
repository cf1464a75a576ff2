"""Tests of enums, typedefs, records and the spelling of types."""

from __future__ import annotations

import unittest

from extract import HEADERS, Facts, extract, extract_one, field, named, record

EVERYWHERE = {
    "Scalars.i8": "int8",
    "Scalars.u8": "uint8",
    "Scalars.i16": "int16",
    "Scalars.u16": "uint16",
    "Scalars.plain": "int",
    "Scalars.plain_unsigned": "uint",
    "Scalars.i32": "int32",
    "Scalars.u64": "uint64",
    "Scalars.letter": "char",
    "Scalars.flag": "bool",
    "Scalars.f32": "float",
    "Scalars.f64": "double",
    "Scalars.size": "size_t",
    "Scalars.number": "Number",
    "Scalars.changing": "volatile int",
    "Pointers.text": "const char*",
    "Pointers.buffers": "const void**",
    "Pointers.fixed": "void* const*",
    "Pointers.alone": "char*",
    "Pointers.later": "Later**",
    "Pointers.forward": "Forward*",
    "Pointers.to_array": "(int64[3])*",
    "Pointers.nameless": "Nameless*",
    "Callbacks.get": "callback(Callbacks*, Later*, ...) -> int",
    "Callbacks.plain": "callback() -> void",
    "Callbacks.table": "(callback(int) -> void)[2]",
    "Callbacks.hook": "callback(Forward*, int64) -> void",
    "Callbacks.returns_hook": "callback(const char*) -> callback(Forward*, int64) -> void",
    "Later.reserved": "int64[3]",
    "Later.grid": "int32[2][3]",
    "Later.bytes": "const uint8[4]",
    "Members.named": "(anonymous)",
    "Members.": "(anonymous)",
    "Either.text": "char[12]",
}
BY_WIDTH = {
    "x86_64-linux-gnu": {"Scalars.i_long": "int64", "Scalars.address": "int64"},
    "x86_64-windows-msvc": {"Scalars.i_long": "int32", "Scalars.address": "int64"},
    "armv7-linux-gnueabihf": {"Scalars.i_long": "int32", "Scalars.address": "int32"},
}
TARGETS = [word for target in BY_WIDTH for word in ("--target", target)]


class Types(unittest.TestCase):
    def test_canonical_types_are_equal_in_c_and_cpp(self) -> None:
        for facts in extract(*TARGETS, "records.h"):
            self.assertEqual(facts["error_count"], 0, facts["diagnostics"])
            for path, expected in (EVERYWHERE | BY_WIDTH[facts["target"]]).items():
                with self.subTest(language=facts["language"], target=facts["target"], path=path):
                    self.assertEqual(field(facts, path)["canonical"], expected)

    def test_type_keeps_spelling(self) -> None:
        facts = extract_one("c", "records.h")
        self.assertEqual(field(facts, "Pointers.later")["type"], "struct Later **")
        self.assertEqual(field(facts, "Scalars.number")["type"], "Number")
        self.assertEqual(field(facts, "Scalars.number")["line"], 31)
        self.assertNotIn(str(HEADERS), field(facts, "Members.named")["type"])

    def test_callbacks(self) -> None:
        for facts in extract("records.h"):
            self.assertEqual(
                field(facts, "Callbacks.get")["callback"],
                {
                    "returns": "int",
                    "arguments": [
                        {"name": "self", "type": "Callbacks*"},
                        {"name": "out", "type": "Later*"},
                    ],
                    "variadic": True,
                    "prototype": True,
                    "convention": None,
                },
            )
            hook = field(facts, "Callbacks.hook")["callback"]
            self.assertEqual(
                hook["arguments"],
                [{"name": "self", "type": "Forward*"}, {"name": "n", "type": "int64"}],
            )
            self.assertFalse(hook["variadic"])
            self.assertIsNone(field(facts, "Callbacks.table")["callback"])
            self.assertIsNone(field(facts, "Pointers.forward")["callback"])

    def test_callback_without_prototype(self) -> None:
        prototypes = [
            field(facts, "Old.release")["callback"]["prototype"]
            for facts in extract("unprototyped.h")
        ]
        self.assertEqual(prototypes, [False, True])

    def test_calling_convention(self) -> None:
        facts = extract_one("c", "--target", "i686-windows-msvc", "convention.h")
        special = field(facts, "Hooks.special")
        self.assertEqual(special["canonical"], "stdcall callback(int) -> void")
        self.assertEqual(special["callback"]["convention"], "stdcall")
        self.assertEqual(field(facts, "Hooks.ordinary")["canonical"], "callback(int) -> void")
        # This target has only one convention and ignores the attribute.
        elsewhere = extract_one("c", "--target", "x86_64-windows-msvc", "convention.h")
        self.assertEqual(field(elsewhere, "Hooks.special")["canonical"], "callback(int) -> void")


def _layout(facts: Facts, name: str) -> tuple[int, int, bool, list[int]]:
    found = record(facts, name)
    offsets = [f["offset"] for f in found["fields"]]
    return found["size"], found["align"], found["packed"], offsets


class Records(unittest.TestCase):
    def test_layouts(self) -> None:
        for facts in extract("records.h"):
            self.assertEqual(_layout(facts, "Packed"), (9, 1, True, [0, 1]))
            self.assertEqual(_layout(facts, "PragmaPacked"), (10, 2, True, [0, 2]))
            self.assertEqual(_layout(facts, "NotReallyPacked"), (16, 8, False, [0, 8]))
            self.assertEqual(_layout(facts, "Aligned"), (32, 32, False, [0]))
            self.assertEqual(_layout(facts, "Flexible"), (8, 8, False, [0, 8]))
            self.assertEqual(_layout(facts, "Later"), (56, 8, False, [0, 24, 48]))
            self.assertEqual(_layout(facts, "Either"), (16, 8, False, [0, 0]))

    def test_fields(self) -> None:
        facts = extract_one("c", "records.h")
        reserved = field(facts, "Later.reserved")
        self.assertEqual((reserved["size"], reserved["align"], reserved["bits"]), (24, 8, None))
        self.assertEqual(field(facts, "Packed.v")["align"], 1)
        self.assertEqual(field(facts, "PragmaPacked.v")["align"], 2)
        self.assertEqual(field(facts, "Flexible.items")["size"], 0)

    def test_bit_fields(self) -> None:
        bits = [
            (f["name"], f["offset"], f["bits"])
            for f in record(extract_one("c", "records.h"), "Bits")["fields"]
        ]
        self.assertEqual(
            bits,
            [
                ("low", 0, {"offset": 0, "width": 3}),
                ("high", 0, {"offset": 3, "width": 7}),
                ("", 4, {"offset": 32, "width": 0}),
                ("next", 4, {"offset": 32, "width": 1}),
            ],
        )

    def test_forward_declarations(self) -> None:
        for facts in extract("records.h"):
            forward = record(facts, "Forward")
            self.assertFalse(forward["complete"])
            self.assertEqual(
                (forward["size"], forward["align"], forward["fields"]), (None, None, [])
            )
            later = record(facts, "Later")
            self.assertTrue(later["complete"])
            self.assertEqual(later["line"], 54)

    def test_names_and_kinds(self) -> None:
        facts = extract_one("c", "records.h")
        self.assertEqual(record(facts, "Either")["kind"], "union")
        self.assertEqual(record(facts, "Nameless")["kind"], "struct")
        nameless = [(r["kind"], r["line"]) for r in facts["records"] if r["name"] == ""]
        self.assertEqual(nameless, [("struct", 61), ("union", 64)])
        self.assertEqual(record(facts, "Inside")["size"], 4)

    def test_typedefs(self) -> None:
        facts = extract_one("c", "records.h")
        self.assertEqual([t["name"] for t in facts["typedefs"]], ["Number", "Hook", "Nameless"])
        number = named(facts["typedefs"], "Number")
        self.assertEqual(
            (number["type"], number["size"], number["align"], number["signed"], number["is_enum"]),
            ("int32", 4, 4, True, False),
        )
        self.assertEqual(number["line"], 8)
        self.assertEqual(named(facts["typedefs"], "Nameless")["signed"], None)
        self.assertEqual(
            named(facts["typedefs"], "Hook")["type"], "callback(Forward*, int64) -> void"
        )


class Enums(unittest.TestCase):
    def test_kinds(self) -> None:
        targets = ("--target", "x86_64-linux-gnu", "--target", "x86_64-windows-msvc")
        found = {
            (f["language"], f["target"]): named(f["enums"], "DeviceKind")
            for f in extract(*targets, "enums.h")
        }
        kinds = {
            run: (e["underlying"], e["signed"], e["fixed"], e["size"]) for run, e in found.items()
        }
        self.assertEqual(
            kinds,
            {
                ("c", "x86_64-linux-gnu"): ("unsigned int", False, False, 4),
                ("c", "x86_64-windows-msvc"): ("int", True, False, 4),
                ("c++", "x86_64-linux-gnu"): ("int", True, True, 4),
                ("c++", "x86_64-windows-msvc"): ("int", True, True, 4),
            },
        )
        for enum in found.values():
            self.assertEqual(
                [(e["name"], e["value"], e["line"], e["spelled"]) for e in enum["enumerators"]],
                [("kCpu", 1, 8, "1"), ("kGpu", 2, 9, None), ("kNext", 17, 10, "kGpu + 15")],
            )

    def test_unusual_enums(self) -> None:
        facts = extract_one("c++", "enums.h")
        names = [e["name"] for e in facts["enums"]]
        self.assertEqual(names, ["DeviceKind", "Negative", "", "Wide", "Tagged", "Scoped"])
        negative, nameless, wide = facts["enums"][1:4]
        self.assertEqual((negative["signed"], negative["scoped"]), (True, False))
        self.assertEqual(negative["enumerators"][0]["value"], -1)
        self.assertEqual(nameless["enumerators"][0]["name"], "kNameless")
        self.assertEqual((wide["size"], wide["enumerators"][0]["value"]), (8, 2**64 - 1))
        scoped = named(facts["enums"], "Scoped")
        self.assertEqual((scoped["scoped"], scoped["fixed"], scoped["size"]), (True, True, 1))

    def test_enums_in_field_types(self) -> None:
        for facts in extract("enums.h"):
            spelled = [f["canonical"] for f in record(facts, "UsesEnums")["fields"]]
            self.assertEqual(spelled, ["DeviceKind", "Negative", "Tagged"])
            alias = named(facts["typedefs"], "TaggedAlias")
            self.assertEqual((alias["type"], alias["is_enum"]), ("Tagged", True))


class CPlusPlus(unittest.TestCase):
    def test_names_are_qualified(self) -> None:
        facts = extract_one("c++", "cplusplus.h")
        self.assertEqual(facts["error_count"], 0, facts["diagnostics"])
        self.assertEqual(
            [(r["kind"], r["name"]) for r in facts["records"]],
            [
                ("struct", "Outer"),
                ("struct", "ns::Inner"),
                ("struct", "ns::Template<int>"),
                ("class", "ns::Derived"),
            ],
        )
        self.assertEqual(field(facts, "Outer.n")["canonical"], "int64")
        self.assertEqual(field(facts, "ns::Inner.outer")["canonical"], "Outer&")
        self.assertEqual(field(facts, "ns::Inner.size")["canonical"], "size_t")
        self.assertEqual(
            field(facts, "ns::Template<int>.other")["canonical"], "ns::Template<char>*"
        )
        self.assertEqual(field(facts, "ns::Derived.color")["canonical"], "ns::deep::Color")
        self.assertEqual(named(facts["typedefs"], "ns::deep::Alias")["type"], "int32")
        self.assertEqual(facts["enums"][0]["name"], "ns::deep::Color")
        self.assertEqual(named(facts["macros"], "TRUTH")["value"], 1)


if __name__ == "__main__":
    unittest.main()
