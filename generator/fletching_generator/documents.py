"""Reads one YAML file, remembers on which line every key stands, and holds it to its schema."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import ScalarString

from .errors import Mistake, SpecError

KeyPath = Sequence[str | int]
Report = Callable[[KeyPath, str, str], None]  # where, what is wrong, how to mend it


class Document:
    """A YAML file: its content, and the line of each key."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name  # "spec/devices.yaml": how errors call it
        self.text, self.content = _parse(path, name)

    def line(self, keys: KeyPath) -> int:
        """The line on which the innermost of the keys stands."""
        node, line = self.content, 1
        for key in keys:
            if isinstance(node, CommentedMap) and key in node:
                line = node.lc.key(key)[0] + 1
            elif isinstance(node, CommentedSeq) and isinstance(key, int):
                line = node.lc.item(key)[0] + 1
            else:
                break
            node = node[key]
        return line

    def mistake(self, keys: KeyPath, problem: str, mend: str) -> Mistake:
        return Mistake(self.name, self.line(keys), spell_keys(keys), problem, mend)

    def reporter(self, mistakes: list[Mistake], *under: str | int) -> Report:
        """What adds to `mistakes`; its keys are those below `under`."""
        return lambda keys, problem, mend: mistakes.append(
            self.mistake([*under, *keys], problem, mend)
        )

    def validate(self, schema_file: Path) -> None:
        """Raises SpecError with everything in which the file differs from its schema."""
        found = _differences(self.text, schema_file.read_text(encoding="utf-8"))
        mistakes = [self.mistake(*difference) for difference in found]
        if mistakes:
            raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))


def spell_keys(keys: KeyPath) -> str:
    """`["devices", 3, "value"]` as `devices[3].value`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text or "(whole file)"


def plain(node: Any) -> Any:
    """The content without the YAML reader's own classes."""
    match node:
        case dict():
            return {str(key): plain(value) for key, value in node.items()}
        case list():
            return [plain(value) for value in node]
        case ScalarString():
            return str(node)
        case bool():
            return bool(node)
        case int():
            return int(node)
        case _:
            return node


def _explain(error: ValidationError) -> tuple[KeyPath, str, str]:
    """Where a schema error stands, what is wrong and how to mend it, in words."""
    keys: list[str | int] = list(error.absolute_path)
    wanted: Any = error.validator_value
    instance: Any = error.instance
    shown = _show(instance)
    match error.validator:
        case "additionalProperties":
            schema: Any = error.schema
            unknown = next(key for key in instance if key not in schema["properties"])
            return [*keys, unknown], f"unknown key '{unknown}'", _suggest(unknown, schema)
        case "required":
            missing = next(key for key in wanted if key not in instance)
            return keys, f"'{missing}' is missing", f"add '{missing}: ...'"
        case "type":
            kind = wanted if isinstance(wanted, str) else " or ".join(wanted)
            problem, mend = f"{shown} is no {kind}", f"write a {kind}"
        case "enum":
            problem, mend = f"{shown} is unknown", f"use one of {', '.join(map(str, wanted))}"
        case "pattern":
            problem, mend = f"{shown} is not spelled as expected", f"it has to match {wanted}"
        case "minimum" | "maximum":
            problem, mend = f"{shown} is out of range", f"the {error.validator} is {wanted}"
        case _:
            problem, mend = error.message, "see spec/schema/"
    return keys, problem, mend


def _suggest(unknown: Any, schema: Any) -> str:
    allowed = list(schema["properties"])
    close = difflib.get_close_matches(str(unknown), allowed, n=1)
    return f"did you mean '{close[0]}'?" if close else f"use one of {', '.join(allowed)}"


def _parse(path: Path, name: str) -> tuple[str, Any]:
    """The text of the file and its content. Raises SpecError when it cannot be read as YAML."""
    whole = "(whole file)"
    try:
        text = path.read_text(encoding="utf-8")
        return text, _load(text)
    except FileNotFoundError:
        mistake = Mistake(name, 1, whole, "the file is missing", "add it")
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        mistake = Mistake(name, 1, whole, problem, "make it a readable file")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        mistake = Mistake(name, 1, whole, problem, "save the file as UTF-8")
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = "not YAML: " + " ".join(str(error.problem or error.context).split())
        mend = "mend the syntax; a value with ': ' or '#' in it needs quotes"
        mistake = Mistake(name, line, "(syntax)", problem, mend)
    except YAMLError as error:
        problem = f"not YAML: {str(error).splitlines()[0]}"
        mistake = Mistake(name, 1, "(syntax)", problem, "mend the syntax")
    raise SpecError(mistake)


# Kept, because tests load a whole spec for every file that they change.
@lru_cache(maxsize=64)
def _load(text: str) -> Any:
    """The content; nobody may change it."""
    return YAML(typ="rt", pure=True).load(text)


@lru_cache(maxsize=64)
def _differences(text: str, schema: str) -> list[tuple[KeyPath, str, str]]:
    validator = Draft202012Validator(json.loads(schema))
    return [_explain(error) for error in validator.iter_errors(_load(text))]


def _show(value: Any) -> str:
    text = json.dumps(plain(value), default=str)
    return text if len(text) <= 60 else text[:57] + "..."
