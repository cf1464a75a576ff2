"""The commands about the spec and its files: generate, traces, check-spec, layout, devices."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from . import generate
from .async_stream import trace_files
from .errors import FINE, FOUND, SpecError, UsageError
from .files import replace_file
from .installation import require_clone, run_program
from .render import render_module
from .rules import texts
from .rules.rulebook import Rulebook, load_rulebook
from .spec.layout import LAYOUT_CLASSES, LayoutClass, StructLayout, layout_class, struct_layout
from .spec.load import load_declarations, load_spec
from .spec.model import Spec
from .terminal import Paint


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def run_generate(root: Path, options: argparse.Namespace) -> int:
    require_clone(root, "generate")
    spec = load_spec(root)
    files = generate.render_all(spec, load_rulebook(root, spec), root)
    return (_check_files if options.check else _write_files)(root, files, options)


def _check_files(root: Path, files: dict[str, str], options: argparse.Namespace) -> int:
    differences = generate.compare(root, files)
    if options.json:
        found = [dataclasses.asdict(difference) for difference in differences]
        print_json({"ok": not found, "files": len(files), "differences": found})
    elif differences:
        for difference in differences:
            print(_painted(difference, options.paint), end="")
        print(f"{len(differences)} of {len(files)} generated files differ from the spec")
    else:
        print(f"{len(files)} generated files agree with the spec")
    return FOUND if differences else FINE


def _painted(difference: generate.Difference, paint: Paint) -> str:
    colors = {"+": "green", "-": "red", "@": "cyan"}
    lines = (difference.diff or f"{difference.path} {difference.problem}\n").splitlines(True)
    return "".join(
        paint(line.rstrip("\n"), colors[line[0]]) + "\n" if line[0] in colors else line
        for line in lines
    )


def _write_files(root: Path, files: dict[str, str], options: argparse.Namespace) -> int:
    changed, removed = generate.write(root, files)
    if options.json:
        print_json({"ok": True, "files": len(files), "changed": changed, "removed": removed})
        return FINE
    for path in (*changed, *(f"{path} (removed)" for path in removed)):
        print(path)
    print(f"{len(files)} generated files, {len(changed) + len(removed)} changed")
    return FINE


def run_traces(root: Path, options: argparse.Namespace) -> int:
    require_clone(root, "traces")
    changed = []
    files = render_module(trace_files, load_spec(root).async_table)
    for name, text in files.items():
        path = options.output / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            replace_file(path, text)
            changed.append(name)
    if options.json:
        print_json({"ok": True, "files": len(files), "changed": changed})
    return FINE


def run_check_spec(root: Path, options: argparse.Namespace) -> int:
    try:
        spec = load_spec(root)
        book = load_rulebook(root, spec)
    except SpecError as error:
        if options.json:
            mistakes = [dataclasses.asdict(mistake) for mistake in error.mistakes]
            print_json({"ok": False, "mistakes": mistakes, "counts": None, "texts": None})
        else:
            print(error, file=sys.stderr)
        return FOUND
    report = texts.check_texts(book, options.texts) if options.texts else None
    wrong = report is not None and report.wrong
    counts = _counts(spec, book)
    if options.json:
        found = texts.as_json(report) if report else None
        print_json({"ok": not wrong, "mistakes": [], "counts": counts, "texts": found})
    elif report is not None:
        print(texts.as_text(report), end="")
    else:
        print(_summary(counts))
    return FOUND if wrong else FINE


def _counts(spec: Spec, book: Rulebook) -> dict[str, int]:
    return {
        "interfaces": len(spec.interfaces),
        "structs": len(spec.structs),
        "fields": sum(len(struct.fields) for struct in spec.structs),
        "callbacks": sum(len(struct.callbacks) for struct in spec.structs),
        "devices": len(spec.devices),
        "runtimes": len(spec.runtimes),
        "errata": len(spec.errata),
        "rules": len(book.rules),
        "texts": len(book.texts),
    }


def _summary(counts: dict[str, int]) -> str:
    return (
        "spec is sound: {interfaces} interfaces, {structs} structs, {fields} fields ({callbacks} "
        "callbacks), {devices} devices, {runtimes} runtimes, {errata} errata, {rules} rules from "
        "{texts} texts"
    ).format(**counts)


def run_layout(root: Path, options: argparse.Namespace) -> int:
    spec = load_declarations(root)
    targets = _targets(options.target)
    known = [struct.name for struct in spec.structs]
    for name in options.struct:
        if name not in known:
            raise UsageError(f"no struct '{name}'; use one of {', '.join(known)}")
    structs = [s for s in spec.structs if not options.struct or s.name in options.struct]
    layouts = {t: [struct_layout(spec, struct, t) for struct in structs] for t in targets}
    if options.json:
        print_json({t.name: _as_json(found) for t, found in layouts.items()})
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


def run_devices(_root: Path, options: argparse.Namespace) -> int:
    json_option = ["--json"] if options.json else []
    return run_program("fletching-inspect", ["devices", *json_option]).returncode
