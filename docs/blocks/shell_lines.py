"""Checks that the commands of a shell block exist: programs, scripts, targets, presets, options."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from fletching_generator import cli
from languages import Language

_SKIPPED = {"do", "then", "else", "!", "sudo", "time", "$"}  # words that may precede a command
_BUILTINS = {"for", "done", "export", "wait", "cd", "."}
_ELSEWHERE = {"nvidia-smi", "nvcc", "conan", "vcpkg"}  # programs of other machines


def problems(text: str, place: str, known: Mapping[str, Language], root: Path) -> Iterator[str]:
    """One line per command that cannot work as written."""
    page = root / place.partition(":")[0]
    folders = [root, page.parent]
    for words in _commands(text):
        if words[0] == "cd":
            folders = [folder / words[1] for folder in folders if (folder / words[1]).is_dir()]
            if not folders:
                yield f"{place}: cd {words[1]}: no such folder"
                return
        problem = _problem(words, folders, known, root)
        if problem:
            yield f"{place}: {shlex.join(words)}: {problem}"


def _commands(text: str) -> Iterator[list[str]]:
    """The simple commands, without leading assignments, redirections and comments."""
    lines = text.replace("\\\n", " ").replace("\n", "\n;\n")  # a comment ends at the line's end
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for token in [*lexer, ";"]:
        if re.fullmatch(r"[;&|()]+", token):
            if words:
                yield words
            words = []
        elif words or not (token in _SKIPPED or re.match(r"\w+=", token)):
            words.append(token)


def _problem(
    words: list[str], folders: list[Path], known: Mapping[str, Language], root: Path
) -> str:
    command, rest = words[0], words[1:]
    if command == "make":
        return _missing("target", _targets(rest), _make_targets(root, known))
    if Path(command).name == "fletching":
        return _parsed(rest)
    if command in ("cmake", "ctest"):
        asked = [b for a, b in itertools.pairwise(rest) if a == "--preset"]
        return _missing("preset", asked, _presets(root))
    if re.fullmatch(r"python3?", Path(command).name) and rest and rest[0].endswith(".py"):
        command, rest = rest[0], rest[1:]
    if command.startswith("/") or re.search(r"(^|/)(\.venv|build)/", command):
        return ""  # created by an earlier command
    if "/" in command:
        return _script(command, rest, folders, root)
    programs = {each for language in known.values() for each in language.commands}
    there = command in _BUILTINS | _ELSEWHERE | programs or shutil.which(command)
    return "" if there else "no such command"


def _script(command: str, words: list[str], folders: list[Path], root: Path) -> str:
    files = [folder / command for folder in folders if (folder / command).is_file()]
    if not files:
        return f"no such file: {command}"
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    return _missing("option", options, _options(files[0], root) | {"--"})


def _options(script: Path, root: Path) -> set[str]:
    """The options in the script's text, or in the text of the scripts that it names."""
    text = script.read_text(encoding="utf-8")
    named = [root / name for name in re.findall(r"[\w/]+\.py", text)]
    texts = [text, *(path.read_text(encoding="utf-8") for path in named if path.is_file())]
    return set(re.findall(r"--[\w-]+", "\n".join(texts)))


def _targets(words: list[str]) -> list[str]:
    return [word for word in words if "=" not in word and not word.startswith("-")]


def _make_targets(root: Path, known: Mapping[str, Language]) -> set[str]:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    patterns = re.findall(r"addprefix (\w+-),\$\(LANGUAGES\)", makefile)
    named = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    return named | {prefix + name for prefix in patterns for name in known}


def _presets(root: Path) -> set[str]:
    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))
    return {each["name"] for each in presets["configurePresets"]}


def _missing(what: str, asked: list[str], known: set[str]) -> str:
    wrong = [name for name in asked if name not in known]
    return f"no {what} {wrong[0]}: expected one of {', '.join(sorted(known))}" if wrong else ""


def _parsed(words: list[str]) -> str:
    """The error of `fletching`'s argument parser, which runs no command."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            cli._parser().parse_args(words)
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    return ""
