"""The command `fletching`. Exit codes: 0 fine or done, 1 found something wrong, 2 could not run."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import generate
from .errors import Mistake, SpecError, UsageError
from .layout import LAYOUT_CLASSES, LayoutClass, StructLayout, layout_class, struct_layout
from .load import load_spec

FINE, FOUND, CANNOT_RUN = 0, 1, 2


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        root = options.root or find_root(Path.cwd())
        return int(options.run(root, options))
    except SpecError as error:
        print(error, file=sys.stderr)
    except UsageError as error:
        print(f"fletching: {error}", file=sys.stderr)
    except OSError as error:
        print(f"fletching: {error.filename}: {error.strerror}", file=sys.stderr)
    return CANNOT_RUN


def find_root(start: Path) -> Path:
    """The nearest folder above `start` that holds the spec, else the one of this installation."""
    for folder in (start, *start.parents, *Path(__file__).resolve().parents):
        if (folder / "spec" / "project.yaml").is_file():
            return folder
    name = "spec/project.yaml"
    raise SpecError(Mistake(name, 1, "(whole file)", "not found", "give --root FOLDER"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fletching", description="Generates and checks Fletching's declarations."
    )
    parser.add_argument("--root", type=Path, help="the repository (default: found from here up)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("generate", help="write every generated file from the spec")
    command.add_argument("--check", action="store_true", help="write nothing; show what differs")
    command.set_defaults(run=_generate)

    command = commands.add_parser("check-spec", help="check the spec and say what it holds")
    command.set_defaults(run=_check_spec)

    command = commands.add_parser("layout", help="print sizes, alignments and offsets")
    command.add_argument("struct", nargs="*", help="a struct (default: all)")
    names = ", ".join(target.name for target in LAYOUT_CLASSES)
    command.add_argument("--target", metavar="CLASS", help=f"one of {names} (default: all)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_layout)
    return parser


def _generate(root: Path, options: argparse.Namespace) -> int:
    texts = generate.render_all(load_spec(root))
    if options.check:
        differences = generate.compare(root, texts)
        sys.stdout.writelines(differences)
        if differences:
            print(f"{len(differences)} of {len(texts)} generated files differ from the spec")
            return FOUND
        print(f"{len(texts)} generated files agree with the spec")
        return FINE
    changed = generate.write(root, texts)
    for path in changed:
        print(path)
    print(f"{len(texts)} generated files, {len(changed)} changed")
    return FINE


def _check_spec(root: Path, _: argparse.Namespace) -> int:
    spec = load_spec(root)
    callbacks = sum(len(struct.callbacks) for struct in spec.structs)
    fields = sum(len(struct.fields) for struct in spec.structs)
    print(
        f"spec is sound: {len(spec.interfaces)} interfaces, {len(spec.structs)} structs, "
        f"{fields} fields ({callbacks} callbacks), {len(spec.devices)} devices, "
        f"{len(spec.errata)} errata"
    )
    return FINE


def _layout(root: Path, options: argparse.Namespace) -> int:
    spec = load_spec(root)
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


if __name__ == "__main__":
    sys.exit(main())
