"""The command `fletching`. Exit codes: 0 success, 1 found mistakes, 2 could not run."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from . import commands, terminal
from .errors import CANNOT_RUN, SpecError, TemplateError, UsageError
from .headers.commands import run_check_header, run_sync
from .installation import find_root
from .spec.layout import LAYOUT_CLASSES
from .spec.load import load_declarations
from .validation import command as validation


def main(arguments: list[str] | None = None) -> int:
    words, flags = _split_flags(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser().parse_args(words, argparse.Namespace(flags=flags))
        options.paint = terminal.painter(options.color, sys.stdout)
        code = int(options.run(_root(options), options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader exited, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SpecError, TemplateError) as error:
        print(error, file=sys.stderr)
    except UsageError as error:
        print(f"fletching: {error}", file=sys.stderr)
    except OSError as error:
        place = error.filename or "standard output"
        print(f"fletching: {place}: {error.strerror}", file=sys.stderr)
    return CANNOT_RUN


def _root(options: argparse.Namespace) -> Path:
    root: Path = options.root or find_root(Path.cwd())
    if not (root / "spec").is_dir():
        raise UsageError(f"--root: {root}: expected a folder with spec/, got none")
    return root


def _split_flags(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Returns the arguments before and after `--`."""
    if "--" not in arguments:
        return arguments, []
    split = arguments.index("--")
    return arguments[:split], arguments[split + 1 :]


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, options: Any, *_: Any) -> None:
        root = options.root or find_root(Path.cwd())
        print(f"{parser.prog} {load_declarations(root).project.version}")
        parser.exit()


def _exit_codes(success: str, found: str | None, cannot_run: str = "could not run") -> str:
    codes = {0: success, 1: found, 2: cannot_run}
    return "\n".join(
        ["exit codes:", *(f"  {code}  {text}" for code, text in codes.items() if text)]
    )


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter  # keeps the lines of the exit codes
    parser = argparse.ArgumentParser(
        prog="fletching",
        description="Checks headers and libraries against the Arrow C interfaces and DLPack;\n"
        "generates Fletching's declarations in a clone.",
        epilog=_exit_codes("success", "found a mistake or a difference"),
        formatter_class=formatter,
    )
    everywhere = argparse.ArgumentParser(add_help=False)
    for place, extra in ((parser, {}), (everywhere, {"default": argparse.SUPPRESS})):
        _add_common_options(place, extra)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    everywhere.add_argument("--json", action="store_true", help="print JSON")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, text: str, epilog: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=epilog,
            parents=[everywhere],
            formatter_class=formatter,
        )

    for add_command in (
        _add_generate,
        _add_traces,
        _add_check_spec,
        _add_layout,
        _add_check_header,
        _add_sync,
        _add_devices,
        _add_validate,
    ):
        add_command(add)
    return parser


def _add_common_options(parser: argparse.ArgumentParser, extra: dict[str, Any]) -> None:
    text = "folder with spec/ (default: the nearest parent folder with one, or this package)"
    parser.add_argument("--root", type=Path, metavar="FOLDER", help=text, **extra)
    parser.add_argument(
        "--color",
        choices=terminal.CHOICES,
        help="color the output (default: auto: on a terminal, or as NO_COLOR or FORCE_COLOR says)",
        **{"default": "auto", **extra},
    )


def _add_generate(add: Any) -> None:
    command = add(
        "generate",
        "write every generated file from the spec (in a clone)",
        epilog=_exit_codes("the files are written, or agree", "with --check: a file differs"),
    )
    command.add_argument(
        "--check", action="store_true", help="write nothing; print the differences"
    )
    command.set_defaults(run=commands.run_generate)


def _add_traces(add: Any) -> None:
    command = add(
        "traces",
        "write the async stream's traces for the tests of every language (in a clone)",
        epilog=_exit_codes("the traces are written", None),
    )
    command.add_argument(
        "--output", type=Path, required=True, metavar="FOLDER", help="where to write them"
    )
    command.set_defaults(run=commands.run_traces)


def _add_check_spec(add: Any) -> None:
    command = add(
        "check-spec",
        "check the spec and print a summary",
        epilog=_exit_codes("the spec is sound", "the spec has a mistake, or a text has changed"),
    )
    command.add_argument(
        "--texts",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="compare the published texts in FOLDER with spec/texts/ (repeatable)",
    )
    command.set_defaults(run=commands.run_check_spec)


def _add_layout(add: Any) -> None:
    command = add(
        "layout",
        "print the sizes, alignments and offsets of the structs",
        epilog=_exit_codes("printed", None, "could not run: an unknown struct or class"),
    )
    command.add_argument("struct", nargs="*", help="struct to print (default: all)")
    names = ", ".join(target.name for target in LAYOUT_CLASSES)
    command.add_argument("--target", metavar="CLASS", help=f"layout class: {names} (default: all)")
    command.set_defaults(run=commands.run_layout)


def _add_check_header(add: Any) -> None:
    command = add(
        "check-header",
        "compare C or C++ headers with the spec",
        epilog=_exit_codes(
            "every header agrees",
            "a header differs",
            "could not run: a header cannot be read, or declares nothing to compare",
        )
        + "\nWith several headers: the highest code of all.",
    )
    command.add_argument(
        "header",
        type=Path,
        nargs="+",
        help="header to check, or - for standard input; flags for Clang follow after --",
    )
    command.add_argument(
        "--as",
        dest="languages",
        metavar="c,c++",
        help="languages in which to read it (default: both)",
    )
    command.add_argument(
        "--targets", default="all", metavar="T,...", help="target triples (default: all)"
    )
    command.add_argument(
        "--interface",
        action="append",
        default=[],
        help="compare only this interface, which the header must declare (repeatable)",
    )
    command.add_argument(
        "--flag",
        action="append",
        default=[],
        help="flag for Clang, such as --flag=-Iinclude, if you cannot use -- (repeatable)",
    )
    command.set_defaults(run=run_check_header)


def _add_sync(add: Any) -> None:
    command = add(
        "sync",
        "add the devices and data-type codes of a dlpack.h to the spec",
        epilog=_exit_codes(
            "the spec is up to date, or was changed", "the header contradicts the spec"
        ),
    )
    command.add_argument(
        "header", type=Path, help="header to read; flags for Clang follow after --"
    )
    command.add_argument("--dry-run", action="store_true", help="write nothing; print what is new")
    command.set_defaults(run=run_sync)


def _add_devices(add: Any) -> None:
    command = add(
        "devices",
        "list the devices of this machine, and why others are absent",
        epilog=_exit_codes("printed", None),
    )
    command.set_defaults(run=commands.run_devices)


def _add_validate(add: Any) -> None:
    command = add(
        "validate",
        "find the rules of the Arrow C interfaces and of DLPack that a library breaks",
        epilog=_exit_codes(
            "no error and no warning",
            "an error or a warning: a broken rule, a crash, a hang or a leak",
            "could not run: no such library or function, or fletching-validate is missing",
        )
        + f"\n\n{validation.ROLES_HELP}",
    )
    validation.add_options(command)


if __name__ == "__main__":
    sys.exit(main())
