"""Tests of macros, guards and conditions."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from extract import HEADERS, Facts, extract, extract_one, named, values


class Macros(unittest.TestCase):
    def test_values(self) -> None:
        expected = {
            "PLAIN": 1,
            "SUM": 7,
            "SIGNED_": -2147483648,
            "UNSIGNED_": 4294967295,
            "HEX": 2147483648,
            "SHIFTED": 4,
            "WIDE": 18446744073709551615,
            "WRAPPED": 4,
            "CAST": -1,
            "NARROW": 1,
            "CHOICE": 10,
            "LETTER": 97,
            "FROM_ENUM": 17,
            "ITSELF": 9,
            "ALIAS": 7,
            "SPLIT": 7,
            "TEXT": None,
            "REAL": None,
            "NOTHING": None,
            "BY_ZERO": None,
            "UNKNOWN": None,
            "CALLED": 42,
            "SHORT_LIVED": 1,
            "WAS_SHORT_LIVED": None,
            "TWICE": 2,
            "NEGATED_HEX": 2147483648,
            "UNFINISHED": None,
            "NEVER_RUN": None,
        }
        for facts in extract("macros.h"):
            with self.subTest(language=facts["language"]):
                self.assertEqual(values(facts["macros"]), expected)
                self.assertEqual(facts["skipped_macros"], [])
                self.assertEqual((facts["diagnostics"], facts["error_count"]), ([], 0))

    def test_file_included_twice_is_listed_once(self) -> None:
        facts = extract_one("c", "repeats.h")
        found = [(m["name"], m["value"], m["undefined"]) for m in facts["macros"]]
        self.assertEqual(found, [("BASE", 2, False), ("PART", 3, False)])
        self.assertEqual(values(facts["skipped_macros"]), {"HIDDEN": 4})
        self.assertEqual(len(facts["skipped_macros"]), 1)

    def test_values_depend_on_target(self) -> None:
        expected = {
            "x86_64-linux-gnu": {"FAR": 2**33, "LONG_MINUS_ONE": 2**64 - 1},
            "i686-linux-gnu": {"FAR": None, "LONG_MINUS_ONE": 2**32 - 1},
            "x86_64-windows-msvc": {"FAR": None, "LONG_MINUS_ONE": 2**32 - 1},
        }
        targets = [word for target in expected for word in ("--target", target)]
        for facts in extract("--as", "c", *targets, "long_width.h"):
            self.assertEqual(values(facts["macros"]), expected[facts["target"]])

    def test_text_and_line(self) -> None:
        facts = extract_one("c", "macros.h")
        macro = named(facts["macros"], "ALIAS")
        self.assertEqual((macro["text"], macro["line"]), ("SUM", 17))
        self.assertEqual(macro["file"], str(HEADERS / "macros.h"))
        self.assertEqual(named(facts["macros"], "SUM")["text"], "(PLAIN + 2 * 3)")
        self.assertEqual(named(facts["macros"], "SPLIT")["text"], "7")
        self.assertEqual(named(facts["macros"], "TEXT")["text"], '"seven"')
        self.assertEqual(named(facts["macros"], "NOTHING")["text"], "")

    def test_undefined_macros_are_marked(self) -> None:
        macros = extract_one("c", "macros.h")["macros"]
        undefined = [(m["name"], m["value"]) for m in macros if m["undefined"]]
        self.assertEqual(undefined, [("SHORT_LIVED", 1), ("TWICE", 1)])

    def test_function_like_macros_are_omitted(self) -> None:
        self.assertNotIn("CALL", values(extract_one("c", "macros.h")["macros"]))

    def test_doubling_forty_times_has_no_value(self) -> None:
        lines = ["#define M0 1", *(f"#define M{i} M{i - 1} + M{i - 1}" for i in range(1, 41))]
        (macros, _) = _values_of("\n".join(lines))
        self.assertEqual((macros["M5"], macros["M40"]), (32, None))

    def test_values_of_parsed_expressions(self) -> None:
        expected = {
            "sizeof(struct Pair)": 8,
            '__builtin_strlen("abc")': 3,
            "((int)1.5)": 1,
            "(0 && 1 / 0)": 0,
            "(-1 << 3)": -8,
            "(3 << 31)": -(2**31),
            "(2147483647 + 1)": None,
            "(1 << 32)": None,
            "1, 2": None,
            "1 2": None,
            "kSecon": None,  # clang would suggest kSecond
            "1" + " + 1" * 999: 1000,
        }
        text = "struct Pair { int a, b; };\nenum { kFirst, kSecond };\n"
        text += "".join(f"#define M{i} {body}\n" for i, body in enumerate(expected))
        for found in _values_of(text):
            self.assertEqual(list(found.values()), list(expected.values()))

    def test_invalid_body_does_not_affect_next(self) -> None:
        bodies = [
            *["(", "[", "{", "kSecond["] * 100,
            *(")", "]", "}", "; int kSecond;", "1 +", "=", "({ 1; })", "[] {", "[x", "S<", "a ?"),
            *("template", "struct X {", "enum {", "( ::", "asm(", "#", "kSecond ::", "new int["),
            *(deep * 300 for deep in ("(", "[", "{", "kSecond[", "f(", "sizeof(", "[] {")),
            *("f(1", "x.", "__builtin_offsetof(", "_Generic(1,", "__attribute__((", "sizeof"),
            *("< ... 1", "nullptr ... 1", "<< CALL(1)", "kSecond struct", "true try"),
        ]
        text = "#define CALL(x) (x + 1)\nenum { kSecond = 1 };\n"
        for i, body in enumerate(bodies):
            text += f"#define B{i} {body}\n#define AFTER{i} (CALL(kSecond))\n"
        for found in _values_of(text):
            self.assertEqual({k: v for k, v in found.items() if v != 2 and v is not None}, {})
            self.assertEqual(sum(v == 2 for v in found.values()), len(bodies))


def _values_of(text: str) -> list[dict[str, int | None]]:
    """Returns the macros of a valid header, in C and in C++."""
    with tempfile.TemporaryDirectory() as folder:
        header = Path(folder) / "bodies.h"
        header.write_text(text)
        runs = extract(header)
    assert all(run["diagnostics"] == [] for run in runs), [run["diagnostics"] for run in runs]
    return [values(run["macros"]) for run in runs]


class Conditions(unittest.TestCase):
    def test_conditions_are_ordered_outermost_first(self) -> None:
        facts = extract_one("c", "conditions.h")
        third = named(facts["macros"], "THIRD")
        self.assertEqual(
            third["conditions"],
            [
                "!defined(CONDITIONS_H)",
                "!(defined(OTHER) && ALWAYS) && !defined(OTHER) && !defined(MORE)",
            ],
        )
        self.assertEqual(
            [
                (m["name"], m["value"], m["line"], m["conditions"][1])
                for m in facts["skipped_macros"]
            ],
            [
                ("FIRST", 1, 8, "defined(OTHER) && ALWAYS"),
                ("SECOND", 2, 10, "!(defined(OTHER) && ALWAYS) && defined(OTHER)"),
                (
                    "FOURTH",
                    4,
                    14,
                    "!(defined(OTHER) && ALWAYS) && !defined(OTHER) && defined(MORE)",
                ),
                ("CPLUSPLUS", 1, 19, "defined(__cplusplus)"),
                ("IN_PROSE", 5, 26, "0"),
            ],
        )

    def test_skipped_macros_depend_on_defines(self) -> None:
        facts = extract_one("c++", "conditions.h", "--", "-DOTHER")
        self.assertEqual(
            values(facts["macros"]),
            {"CONDITIONS_H": None, "ALWAYS": 1, "FIRST": 1, "CPLUSPLUS": 1},
        )
        self.assertEqual(
            values(facts["skipped_macros"]),
            {"SECOND": 2, "THIRD": 3, "FOURTH": 4, "CPLUSPLUS": 0, "IN_PROSE": 5},
        )
        self.assertEqual(
            named(facts["skipped_macros"], "CPLUSPLUS")["conditions"][-1], "!defined(__cplusplus)"
        )


def _guards(facts: Facts) -> list[tuple[str, int, int, bool, bool]]:
    return [
        (g["macro"], g["line"], g["end_line"], g["taken"], g["reached"]) for g in facts["guards"]
    ]


class Guards(unittest.TestCase):
    def test_taken_guards(self) -> None:
        facts = extract_one("c", "guards.h")
        self.assertEqual(
            _guards(facts),
            [
                ("OUTER_H", 1, 32, True, True),
                ("INNER_A", 6, 12, True, True),
                ("INNER_B", 15, 21, True, True),
            ],
        )
        self.assertEqual(facts["guards"][1]["conditions"], ["!defined(OUTER_H)"])
        self.assertEqual(facts["guards"][1]["file"], str(HEADERS / "guards.h"))

    def test_skipped_guards(self) -> None:
        facts = extract_one("c", "guards.h", "--", "-DINNER_A", "-DINNER_B")
        self.assertEqual(
            [g[3:] for g in _guards(facts)], [(True, True), (False, True), (False, True)]
        )
        self.assertEqual(facts["records"], [])
        hidden = {k: v for k, v in values(facts["skipped_macros"]).items() if v is not None}
        self.assertEqual(hidden, {"A_VALUE": 1, "B_VALUE": 2})

    def test_unreached_guards(self) -> None:
        facts = extract_one("c", "guards.h", "--", "-DOUTER_H")
        self.assertEqual(
            [g[3:] for g in _guards(facts)], [(False, True), (False, False), (False, False)]
        )

    def test_second_copy_is_hidden(self) -> None:
        for facts in extract("both_copies.h"):
            first, second = facts["guards"]
            self.assertTrue(first["file"].endswith("first_copy.h") and first["taken"])
            self.assertTrue(second["file"].endswith("second_copy.h") and not second["taken"])
            self.assertEqual(named(facts["macros"], "SHARED_VALUE")["value"], 1)
            hidden = named(facts["skipped_macros"], "SHARED_VALUE")
            self.assertEqual(
                (hidden["value"], hidden["conditions"]), (2, ["!defined(SHARED_GUARD)"])
            )
            self.assertTrue(hidden["file"].endswith("second_copy.h"))
            self.assertEqual([f["name"] for f in facts["records"][0]["fields"]], ["first"])


if __name__ == "__main__":
    unittest.main()
