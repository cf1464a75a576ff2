"""`fletching validate --explain RULE`: the rule, its sources, and a valid and a broken example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..installation import INSTALLED
from .findings import CHECKS
from .rule_links import Rules

_FILES = ("data.json", "public.json")
_ABOUT_THE_CASE = ("name", "origin", "about", "verdict", "rule", "erratum", "exceptions", "level")


def explain(rule: str, rules: Rules) -> str:
    """Raises UsageError for an unknown rule."""
    if rule in CHECKS:
        return f"{rule}\n\n{CHECKS[rule]}\nNo published rule describes it.\n{rules.link(rule)}\n"
    found = rules.find(rule)
    if found is None:
        raise UsageError(f"validate: {rule}: unknown rule: expected an id of a finding")
    _, known = found
    lines = [rule, "", known.text, f"{known.severity}, {known.party}", ""]
    for text, section in rules.book.sources[rule]:
        name = f", {section.name}" if section.name else ""
        lines.append(f"source: {text.title}{name}: {text.link(section)}")
    if known.source:
        lines.append(f"source: {known.source}")
    examples = list(_examples(rule, rules.root))
    if not examples:
        reason = known.no_case or "a call breaks it; `make rule-cases` names its cases in a clone"
        examples = [f"no example: {reason}"]
    lines += [f"page: {rules.link(rule)}", "", *examples]
    return "\n".join(lines).rstrip("\n") + "\n"


def _examples(rule: str, root: Path) -> Iterator[str]:
    """Yields a case that breaks the rule and the nearest valid one, from tests/corpus."""
    cases = _corpus(root)
    for name, case in cases.items():
        valid = re.sub(r"^misspelling(\..*)-\d+$", r"spelling\1", re.sub(r"-bad$", "-good", name))
        if case.get("rule") == rule and valid != name and valid in cases:
            for kind, each in (("bad", case), ("good", cases[valid])):
                content = {k: v for k, v in each.items() if k not in _ABOUT_THE_CASE}
                yield f"{kind}: {each.get('about', each['name'])}"
                yield f"  {json.dumps(content)}"
            return


def _corpus(root: Path) -> dict[str, Any]:
    folders = (root / "tests" / "corpus", INSTALLED / "corpus")
    folder = next((each for each in folders if (each / _FILES[0]).is_file()), None)
    if folder is None:
        return {}
    files = [json.loads((folder / name).read_text(encoding="utf-8")) for name in _FILES]
    return {case["name"]: case for file in files for case in file["cases"]}
