"""Tests of targets, errors in headers, include folders and the command line."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from extract import (
    HEADERS,
    extract,
    extract_one,
    field,
    named,
    record,
    run,
    values,
)

# pointer size, alignment of an int64 member, big endian
DATA_MODELS = {
    "x86_64-linux-gnu": (8, 8, False),
    "aarch64-linux-gnu": (8, 8, False),
    "x86_64-windows-msvc": (8, 8, False),
    "x86_64-w64-windows-gnu": (8, 8, False),
    "arm64-apple-macosx14": (8, 8, False),
    "riscv64-linux-gnu": (8, 8, False),
    "s390x-linux-gnu": (8, 8, True),
    "powerpc64-linux-gnu": (8, 8, True),
    "i686-linux-gnu": (4, 4, False),
    "i386-freebsd": (4, 4, False),
    "i686-windows-msvc": (4, 8, False),
    "armv7-linux-gnueabihf": (4, 8, False),
    "x86_64-linux-gnux32": (4, 8, False),
    "wasm32-wasip1": (4, 8, False),
    "mips-linux-gnu": (4, 8, True),
    "powerpc-linux-gnu": (4, 8, True),
}


class Targets(unittest.TestCase):
    def test_data_models(self) -> None:
        targets = [word for target in DATA_MODELS for word in ("--target", target)]
        runs = extract(*targets, "member_alignment.h")
        languages = [(f["language"], f["target"]) for f in runs]
        self.assertEqual(languages, [(lang, t) for lang in ("c", "c++") for t in DATA_MODELS])
        for facts in runs:
            with self.subTest(language=facts["language"], target=facts["target"]):
                size, align, big_endian = DATA_MODELS[facts["target"]]
                self.assertEqual(
                    facts["data_model"],
                    {"pointer_size": size, "int64_align": align, "big_endian": big_endian},
                )
                # The data model must agree with a member.
                member = field(facts, "Member.v")
                self.assertEqual((member["offset"], member["align"]), (align, align))
                self.assertEqual(record(facts, "Member")["size"], align + 8)

    def test_rejects_unknown_triples(self) -> None:
        for triple, why in {
            "pdp11-linux-gnu": "clang knows no architecture 'pdp11'",
            "x86_64-lunix-gnu": "clang knows no operating system 'lunix'",
            "x86_64-linuxx-gnu": "clang knows no operating system 'linuxx'",
            "x86_64-pc-hurdle-gnu": "clang knows no operating system 'hurdle'",
            "x86_64-linux-gnux31": "clang knows no environment 'gnux31'",
            "wasm32-windows-msvc": "clang cannot compile C for this combination",
            "": "clang knows no architecture ''",
        }.items():
            with self.subTest(triple=triple):
                done = run("--target", "x86_64-linux-gnu", "--target", triple, HEADERS / "macros.h")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(
                    done.stderr, f"fletching-extract: unknown target '{triple}': {why}\n"
                )


class Errors(unittest.TestCase):
    def test_reports_first_three_errors_and_surrounding_facts(self) -> None:
        for facts in extract("errors.h"):
            self.assertEqual(facts["error_count"], 4)
            places = [(d["severity"], d["line"], d["column"]) for d in facts["diagnostics"]]
            self.assertEqual(places, [("error", 11, 3), ("error", 14, 1), ("error", 15, 1)])
            self.assertEqual(facts["diagnostics"][0]["file"], str(HEADERS / "errors.h"))
            self.assertEqual(facts["diagnostics"][0]["text"], "unknown type name 'unknown_t'")
            self.assertEqual(values(facts["macros"]), {"BEFORE": 1, "AFTER": 2})
            self.assertEqual(record(facts, "AlsoGood")["size"], 8)
            bad = record(facts, "Bad")
            self.assertEqual((bad["valid"], bad["size"]), (False, None))
            self.assertEqual(
                [(f["name"], f["offset"]) for f in bad["fields"]], [("a", None), ("b", None)]
            )
            self.assertTrue(record(facts, "Good")["valid"])

    def test_reports_missing_include(self) -> None:
        facts = extract_one("c", "missing_include.h")
        self.assertEqual(facts["diagnostics"][0]["severity"], "fatal")
        self.assertEqual(facts["diagnostics"][0]["text"], "'not_there.h' file not found")
        self.assertEqual(record(facts, "StillThere")["size"], 4)
        self.assertEqual(values(facts["macros"]), {"STILL_THERE": 1})

    def test_reports_redefinition(self) -> None:
        for facts in extract("redefinition.h"):
            self.assertEqual(facts["error_count"], 1)
            self.assertEqual([(r["name"], r["line"]) for r in facts["records"]], [("Twice", 1)])

    def test_warnings_are_not_errors(self) -> None:
        facts = extract_one("c", "macros.h", "--", "-DPLAIN=3")
        self.assertEqual((facts["error_count"], facts["warning_count"]), (0, 1))
        self.assertEqual(facts["diagnostics"][0]["severity"], "warning")

    def test_accepts_non_utf8_bytes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "latin.h"
            header.write_bytes(b'// \xe4\n#define NAME "\xff"\nstruct S { int a; };\nint \xff;\n')
            facts = extract_one("c", header)
        self.assertEqual(named(facts["macros"], "NAME")["text"], '"\ufffd"')
        self.assertEqual(record(facts, "S")["size"], 4)
        self.assertEqual(facts["error_count"], 1)

    def test_accepts_empty_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "empty.h"
            header.touch()
            facts = extract_one("c", header)
        self.assertEqual((facts["error_count"], facts["records"], facts["macros"]), (0, [], []))


class Includes(unittest.TestCase):
    def test_standard_headers_need_no_system(self) -> None:
        targets = [word for target in DATA_MODELS for word in ("--target", target)]
        for facts in extract(*targets, "standard_headers.h"):
            with self.subTest(language=facts["language"], target=facts["target"]):
                self.assertEqual((facts["diagnostics"], facts["error_count"]), ([], 0))
                # The declarations of the standard headers must not be listed.
                self.assertEqual([r["name"] for r in facts["records"]], ["Buffer"])
                self.assertEqual(values(facts["macros"]), {"NO_MEMORY": 12})

    def test_include_folders(self) -> None:
        flags = ("-I", HEADERS / "user", "-isystem", HEADERS / "system")
        facts = extract_one("c", "folders.h", "--", *flags)
        self.assertEqual(facts["error_count"], 0, facts["diagnostics"])
        self.assertEqual([r["name"] for r in facts["records"]], ["UserPart", "Both"])
        # The user's <errno.h> precedes the stand-in.
        self.assertEqual(
            values(facts["macros"]),
            {"ENOMEM": 99, "USER_VALUE": 2, "FROM_SYSTEM": 1, "FROM_ERRNO": 99},
        )

    def test_standards(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "version.h"
            header.write_text(
                "#ifdef __cplusplus\n#define IS __cplusplus\n"
                "#else\n#define IS __STDC_VERSION__\n#endif\n"
            )
            default = [values(f["macros"])["IS"] for f in extract(header)]
            chosen = values(extract_one("c", header, "--", "-std=c99")["macros"])["IS"]
        self.assertEqual((default, chosen), ([201710, 202002], 199901))


class CommandLine(unittest.TestCase):
    def refused(self, *arguments: str | Path, input: str | None = None) -> str:
        """Returns the single line on stderr of a run that could not start."""
        done = run(*arguments, input=input)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Afletching-extract: [^\n]+\n\Z")
        return done.stderr

    def test_rejects_unreadable_files(self) -> None:
        self.assertIn("/no/such.h: No such file", self.refused("/no/such.h"))
        self.assertIn("it is a directory", self.refused(HEADERS))
        self.assertIn("it is not a regular file", self.refused("/dev/zero"))
        self.assertIn("cannot read /proc/self/mem", self.refused("/proc/self/mem"))
        with tempfile.TemporaryDirectory() as folder:
            binary = Path(folder) / "binary.h"
            binary.write_bytes(b"int a;" * 1000 + b"\0")
            self.assertIn("it has NUL bytes", self.refused(binary))

    def test_rejects_wrong_arguments(self) -> None:
        header = HEADERS / "macros.h"
        for arguments, why in (
            ((), "FILE is missing"),
            (("--target",), "--target needs a value"),
            (("--as", "java", header), "--as takes c or c++, not 'java'"),
            (
                ("--frobnicate", header),
                "unknown option '--frobnicate'; flags for clang go after --",
            ),
            ((header, header), "one FILE at a time"),
            ((header, "--", "-frobnicate"), "unknown argument: '-frobnicate'"),
            ((header, "--", "-std=c++17"), "'-std=c++17' not allowed with 'C'"),
            ((header, "--", "-I"), "argument to '-I' is missing"),
            ((header, "--", "other.h"), "no such file or directory: 'other.h'"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(why, self.refused(*arguments))

    def test_reads_standard_input(self) -> None:
        text = '#include "macros.h"\nstruct Here { int64_t x; };\n'
        done = run("-", "--as", "c", input="#include <stdint.h>\n" + text, cwd=HEADERS)
        (facts,) = json.loads(done.stdout)["runs"]
        self.assertEqual(facts["error_count"], 0, done.stdout)
        self.assertEqual(record(facts, "Here")["file"], "<stdin>")
        self.assertIn("cannot read <stdin>: it has NUL bytes", self.refused("-", input="\0"))

    def test_needs_no_installed_clang_headers(self) -> None:
        """Fails if an include comes from LLVM's folder instead of the program."""
        names = [
            "stdint",
            "stddef",
            "stdbool",
            "stdarg",
            "stdatomic",
            "stdalign",
            "limits",
            "float",
            "iso646",
        ]
        text = "".join(f"#include <{name}.h>\n" for name in names) + "#include <no/such.h>\n"
        done = run("-", "--as", "c", "--", "-H", input=text)
        (facts,) = json.loads(done.stdout)["runs"]
        self.assertEqual(facts["error_count"], 1, facts["diagnostics"])
        self.assertEqual(facts["diagnostics"][0]["line"], len(names) + 1)
        self.assertIn("/fletching-clang/stdint.h", done.stderr)
        self.assertNotIn("llvm", done.stderr)

    def test_reports_clang_crash(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder) / "crash.h"
            header.write_text("#pragma clang __debug crash\n")
            self.assertIn("clang crashed on this header", self.refused(header))

    def test_prints_help(self) -> None:
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: fletching-extract", done.stdout)

    def test_output_is_reproducible(self) -> None:
        header = HEADERS / "records.h"
        first, second = run(header), run(header)
        self.assertEqual(first.stdout, second.stdout)
        self.assertEqual(json.loads(first.stdout)["file"], str(header))


if __name__ == "__main__":
    unittest.main()
