"""The command `fletching`. Exit codes: 0 success, 1 found mistakes, 2 could not run."""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import generate
from .async_stream import trace_files
from .errors import CANNOT_RUN, FINE, FOUND, Mistake, SpecError, TemplateError, UsageError
from .files import replace_file
from .headers.commands import run_check_header, run_sync
from .render import render_module
from .rules import texts
from .rules.rulebook import load_rulebook
from .spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, layout_class, struct_layout
from .spec.load import load_declarations, load_spec


def main(arguments: list[str] | None = None) -> int:
    words, flags = _split_flags(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser().parse_args(words, argparse.Namespace(flags=flags))
        root = options.root or find_root(Path.cwd())
        code = int(options.run(root, options))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader exited, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SpecError, TemplateError) as error:
        print(error, file=sys.stderr)
    except UsageError as error:
        print(f"fletching: {error}", file=sys.stderr)
    except OSError as error:
        print(f"fletching: {error.filename}: {error.strerror}", file=sys.stderr)
    return CANNOT_RUN


def find_root(start: Path) -> Path:
    """Returns the nearest folder above `start` with a spec, or this installation's folder."""
    for folder in (start, *start.parents, *Path(__file__).resolve().parents):
        if (folder / "spec" / "project.yaml").is_file():
            return folder
    name = "spec/project.yaml"
    raise SpecError(Mistake(name, 1, "(whole file)", "not found", "pass --root FOLDER"))


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fletching", description="Generates and checks Fletching's declarations."
    )
    text = "the repository (default: the first parent folder that is one)"
    parser.add_argument("--root", type=Path, help=text)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    everywhere = argparse.ArgumentParser(add_help=False)
    everywhere.add_argument("--root", type=Path, help=text, default=argparse.SUPPRESS)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = functools.partial(commands.add_parser, parents=[everywhere])

    command = add("generate", help="write every generated file from the spec")
    command.add_argument(
        "--check", action="store_true", help="write nothing; print the differences"
    )
    command.set_defaults(run=_generate)

    command = add(
        "traces", help="write the traces of the async stream for the tests of every language"
    )
    command.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    command.set_defaults(run=_traces)

    command = add("check-spec", help="check the spec and print a summary")
    command.add_argument(
        "--texts",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="compare the published texts in FOLDER with spec/texts/ (repeatable)",
    )
    command.set_defaults(run=_check_spec)

    command = add("layout", help="print sizes, alignments and offsets")
    command.add_argument("struct", nargs="*", help="a struct (default: all)")
    names = ", ".join(target.name for target in LAYOUT_CLASSES)
    command.add_argument("--target", metavar="CLASS", help=f"one of {names} (default: all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_layout)

    command = add("check-header", help="compare any C or C++ header with the spec")
    command.add_argument("header", type=Path, help="the header; clang's flags follow after --")
    command.add_argument(
        "--as",
        dest="languages",
        metavar="c,c++",
        help="the languages to read it in (default: both)",
    )
    command.add_argument(
        "--targets", default="all", metavar="all|T,...", help="the target triples (default: all)"
    )
    command.add_argument(
        "--interface",
        action="append",
        default=[],
        help="compare only this interface, which must be declared (repeatable)",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=run_check_header)

    command = add("sync", help="add the devices and data-type codes of a dlpack.h to the spec")
    command.add_argument("header", type=Path, help="the header; clang's flags follow after --")
    command.add_argument("--dry-run", action="store_true", help="write nothing; print what is new")
    command.set_defaults(run=run_sync)

    command = add("devices", help="list the devices of this machine, and why others are absent")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_devices)
    return parser


def _generate(root: Path, options: argparse.Namespace) -> int:
    spec = load_spec(root)
    files = generate.render_all(spec, load_rulebook(root, spec), root)
    if options.check:
        differences = generate.compare(root, files)
        sys.stdout.writelines(differences)
        if differences:
            print(f"{len(differences)} of {len(files)} generated files differ from the spec")
            return FOUND
        print(f"{len(files)} generated files agree with the spec")
        return FINE
    changed = generate.write(root, files)
    for path in changed:
        print(path)
    print(f"{len(files)} generated files, {len(changed)} changed")
    return FINE


def _traces(root: Path, options: argparse.Namespace) -> int:
    for name, text in render_module(trace_files, load_spec(root).async_table).items():
        path = options.output / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            replace_file(path, text)
    return FINE


def _check_spec(root: Path, options: argparse.Namespace) -> int:
    try:
        spec = load_spec(root)
        book = load_rulebook(root, spec)
    except SpecError as error:
        print(error, file=sys.stderr)
        return FOUND
    if options.texts:
        report = texts.check_texts(book, options.texts)
        print(texts.as_text(report), end="")
        return FOUND if report.wrong else FINE
    callbacks = sum(len(struct.callbacks) for struct in spec.structs)
    fields = sum(len(struct.fields) for struct in spec.structs)
    print(
        f"spec is sound: {len(spec.interfaces)} interfaces, {len(spec.structs)} structs, "
        f"{fields} fields ({callbacks} callbacks), {len(spec.devices)} devices, "
        f"{len(spec.runtimes)} runtimes, {len(spec.errata)} errata, "
        f"{len(book.rules)} rules from {len(book.texts)} texts"
    )
    return FINE


def _layout(root: Path, options: argparse.Namespace) -> int:
    spec = load_declarations(root)
    targets = _targets(options.target)
    known = [struct.name for struct in spec.structs]
    for name in options.struct:
        if name not in known:
            raise UsageError(f"no struct '{name}'; use one of {', '.join(known)}")
    structs = [s for s in spec.structs if not options.struct or s.name in options.struct]
    layouts = {t: [struct_layout(spec, struct, t) for struct in structs] for t in targets}
    if options.json:
        print(json.dumps({t.name: _as_json(found) for t, found in layouts.items()}, indent=2))
    else:
        print("\n".join(_as_text(t, found) for t, found in layouts.items()))
    return FINE


def _targets(name: str | None) -> tuple[LayoutClass, ...]:
    if name is None:
        return LAYOUT_CLASSES
    target = layout_class(name)
    if target is None:
        known = ", ".join(target.name for target in LAYOUT_CLASSES)
        raise UsageError(f"no layout class '{name}'; use one of {known}")
    return (target,)


def _as_json(layouts: list[StructLayout]) -> dict[str, object]:
    return {
        layout.struct: {
            "size": layout.size,
            "align": layout.align,
            "fields": {f.name: {"offset": f.offset, "size": f.size} for f in layout.fields},
        }
        for layout in layouts
    }


def _as_text(target: LayoutClass, layouts: list[StructLayout]) -> str:
    lines = [f"{target.name}: {target.targets}"]
    for layout in layouts:
        lines.append(f"  {layout.struct}: size {layout.size}, align {layout.align}")
        lines.extend(f"    {f.offset:4} {f.size:4}  {f.name}" for f in layout.fields)
    return "\n".join(lines) + "\n"


def _devices(root: Path, options: argparse.Namespace) -> int:
    return _inspect(root, "devices", *(["--json"] if options.json else []))


def _inspect(root: Path, *arguments: str) -> int:
    """Runs the C++ program that detects the vendors' libraries."""
    program = root / "build" / "bin" / "fletching-inspect"
    if not program.exists():
        raise UsageError(f"{program} is not built; run `make build`")
    return subprocess.run([program, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
