"""Reads one YAML file, records the line of every key, and validates it against its schema."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from ..errors import Mistake, SpecError
from .yaml_reader import Lines, YamlError, read_yaml

KeyPath = Sequence[str | int]
Report = Callable[[KeyPath, str, str], None]  # place, problem, hint


class Document:
    """A YAML file: its immutable content, and the line of each key."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name  # "spec/devices.yaml": the name in errors
        self.text = _read(path, name)
        try:
            self.content, self._lines = _load(self.text)
        except YamlError as error:
            mistake = Mistake(name, error.line, "(syntax)", error.problem, error.hint)
            raise SpecError(mistake) from None

    def line(self, keys: KeyPath) -> int:
        """Returns the line of the innermost key that exists in the file."""
        for length in range(len(keys), 0, -1):
            line = self._lines.get(tuple(keys[:length]))
            if line is not None:
                return line
        return 1

    def mistake(self, keys: KeyPath, problem: str, hint: str) -> Mistake:
        return Mistake(self.name, self.line(keys), spell_keys(keys), problem, hint)

    def reporter(self, mistakes: list[Mistake], *under: str | int) -> Report:
        """Returns a function that adds to `mistakes`; its keys are relative to `under`."""
        return lambda keys, problem, hint: mistakes.append(
            self.mistake([*under, *keys], problem, hint)
        )

    def validate(self, schema_file: Path) -> None:
        """Raises SpecError with all differences between the file and its schema."""
        found = _differences(self.text, schema_file.read_text(encoding="utf-8"))
        mistakes = [self.mistake(*difference) for difference in found]
        if mistakes:
            raise SpecError(*sorted(mistakes, key=lambda mistake: mistake.line))


def spell_keys(keys: KeyPath) -> str:
    """Returns `devices[3].value` for `["devices", 3, "value"]`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text or "(whole file)"


def _explain(error: ValidationError) -> tuple[KeyPath, str, str]:
    """Returns the place, the problem and the hint of a schema error."""
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
            problem, hint = f"expected type {kind}, got {shown}", "change the value"
        case "enum":
            problem, hint = f"{shown} is unknown", f"use one of {', '.join(map(str, wanted))}"
        case "pattern":
            problem, hint = (
                f"{shown} does not match the pattern",
                f"match {wanted}",
            )
        case "minimum" | "maximum":
            problem, hint = f"{shown} is out of range", f"the {error.validator} is {wanted}"
        case _:
            problem, hint = error.message, "see spec/schema/"
    return keys, problem, hint


def _suggest(unknown: Any, schema: Any) -> str:
    allowed = list(schema["properties"])
    close = difflib.get_close_matches(str(unknown), allowed, n=1)
    return f"did you mean '{close[0]}'?" if close else f"use one of {', '.join(allowed)}"


def _read(path: Path, name: str) -> str:
    """Returns the text of the file. Raises SpecError for a missing file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        problem, hint = "the file is missing", "add it"
    except OSError as error:
        problem, hint = f"cannot be read ({error.strerror})", "make it a readable file"
    except UnicodeDecodeError as error:
        problem, hint = f"byte {error.start} is not UTF-8", "save the file as UTF-8"
    raise SpecError(Mistake(name, 1, "(whole file)", problem, hint))


# Cached, because tests load the whole spec for every file that they change.
@lru_cache(maxsize=64)
def _load(text: str) -> tuple[Any, Lines]:
    return read_yaml(text)


@lru_cache(maxsize=64)
def _differences(text: str, schema: str) -> list[tuple[KeyPath, str, str]]:
    return [_explain(error) for error in _validator(schema).iter_errors(_load(text)[0])]


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    """Resolves definitions by name, because the library's resolution takes half of the run time."""
    content = json.loads(schema)

    def follow(validator: Any, name: str, instance: Any, _: Any) -> Iterator[ValidationError]:
        yield from validator.descend(instance, content["$defs"][name.removeprefix("#/$defs/")])

    make: Any = extend  # untyped
    return make(Draft202012Validator, {"$ref": follow})(content)


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
