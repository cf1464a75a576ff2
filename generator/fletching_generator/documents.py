"""Reads one YAML file, remembers on which line every key stands, and holds it to its schema."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarstring import ScalarString

from .errors import SpecError, SpecErrors

KeyPath = Sequence[str | int]


class Document:
    """A YAML file: its content, and the line of each key."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name  # "spec/devices.yaml": how errors call it
        self.content: Any = _parse(path, name)

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

    def error(self, keys: KeyPath, problem: str, mend: str) -> SpecError:
        return SpecError(self.name, self.line(keys), spell_keys(keys), problem, mend)

    def validate(self, schema_file: Path) -> None:
        """Raises SpecErrors with everything in which the file differs from its schema."""
        schema = json.loads(schema_file.read_text(encoding="utf-8"))
        found = Draft202012Validator(schema).iter_errors(self.content)
        errors = [self._explain(error) for error in found]
        if errors:
            raise SpecErrors(sorted(errors, key=lambda error: error.line))

    def _explain(self, error: ValidationError) -> SpecError:
        keys: list[str | int] = list(error.absolute_path)
        match error.validator:
            case "additionalProperties" if isinstance(error.instance, dict):
                allowed = list(error.schema.get("properties", {}))  # type: ignore[union-attr]
                unknown = next(key for key in error.instance if key not in allowed)
                close = difflib.get_close_matches(str(unknown), allowed, n=1)
                mend = f"did you mean '{close[0]}'?" if close else f"use one of {', '.join(allowed)}"
                return self.error([*keys, unknown], f"unknown key '{unknown}'", mend)
            case "required" if isinstance(error.instance, dict):
                missing = next(k for k in error.validator_value if k not in error.instance)
                return self.error(keys, f"'{missing}' is missing", f"add '{missing}: ...'")
            case "type":
                wanted = error.validator_value
                wanted = wanted if isinstance(wanted, str) else " or ".join(wanted)
                return self.error(keys, f"{_show(error.instance)} is no {wanted}", f"write a {wanted}")
            case "enum":
                choices = ", ".join(str(choice) for choice in error.validator_value)
                return self.error(keys, f"{_show(error.instance)} is unknown", f"use one of {choices}")
            case "pattern":
                return self.error(
                    keys,
                    f"{_show(error.instance)} is not spelled as expected",
                    f"it has to match {error.validator_value}",
                )
            case "minimum" | "maximum":
                return self.error(
                    keys,
                    f"{error.instance} is out of range",
                    f"the {error.validator} is {error.validator_value}",
                )
            case _:
                return self.error(keys, error.message, "see spec/schema/")


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


def _parse(path: Path, name: str) -> Any:
    try:
        return YAML(typ="rt", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(name, 1, "(whole file)", "the file is missing", "add it") from None
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise SpecError(name, 1, "(whole file)", problem, "make it a readable file") from None
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise SpecError(name, 1, "(whole file)", problem, "save the file as UTF-8") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        raise SpecError(
            name,
            mark.line + 1 if mark else 1,
            "(syntax)",
            f"not YAML: {problem}",
            "mend the syntax; a value with ': ' or '#' in it needs quotes",
        ) from None
    except YAMLError as error:
        first = str(error).splitlines()[0]
        raise SpecError(name, 1, "(syntax)", f"not YAML: {first}", "mend the syntax") from None


def _show(value: Any) -> str:
    text = json.dumps(plain(value), default=str)
    return text if len(text) <= 60 else text[:57] + "..."
