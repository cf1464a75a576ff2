"""The verdict on a mutant in a language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from mutations import Mutant
from scratch import Outcome

KILLED = "killed"
EQUIVALENT = "equivalent"  # survived, with a reason in equivalents.yaml
SURVIVED = "survived"
NO_LINE = "no line"  # failed, but no oracle line names the mistake
CRASH = "crash"
COMPILE_ERROR = "compile-error"
GOOD = (KILLED, EQUIVALENT)
ALL = (KILLED, EQUIVALENT, SURVIVED, NO_LINE, CRASH, COMPILE_ERROR)

# Matches the oracle's lines (tests/oracle), and the lines of events/ about a vendor library's
# result. Other lines of a language's tests do not match.
_ORACLE_LINE = re.compile(
    r"(?P<subject>ARROW_\w+|DLPACK_\w+|(?:Arrow|DL)\w+(?:\.\w+)*|[a-z_]+\.event)(?:\[\d+\])?"
    r"(?: argument \d+(?: \(\w+\))?| result)?: "
    r"(?:(?:offset|size|alignment|field|signature) \S+ upstream"
    r"|-?\d+ upstream, -?\d+ in the binding"
    r"|upstream has no such (?:field|struct|constant|callback|value|enumerator)"
    r"|the binding has no such (?:field|constant|callback|enumerator)"
    r"|twice in the binding|C wrote 0x|byte \d+ of the struct"
    r"|(?:C|the binding) (?:called it|sent)"
    r"|the callback (?:reported|did not report|returned|is NULL)|arrived twice"
    r"|(?:pending|done|pending or done) by the runtime, [a-z0-9 ]+ by the tables).*"
)


@dataclass(frozen=True)
class Verdict:
    mutant: str  # "swap:ArrowArray.length+null_count"
    language: str  # "java-ffm"
    result: str  # one of ALL
    line: str  # the oracle's line, the reason of an equivalent, or the end of the output


class Equivalents:
    """Mutants that no ABI test can kill, with the reason."""

    def __init__(self, path: Path) -> None:
        entries = YAML(typ="safe").load(path)["equivalents"]
        self._entries: list[Mapping[str, str | list[str]]] = entries
        self._used: set[int] = set()

    def reason(self, mutant: str, language: str) -> str | None:
        for index, entry in enumerate(self._entries):
            if re.fullmatch(str(entry["mutants"]), mutant) and language in entry.get(
                "languages", [language]
            ):
                self._used.add(index)
                return str(entry["reason"])
        return None

    def unused(self) -> Iterator[str]:
        """Returns the entries that match no survivor: they could hide a defect later."""
        for index, entry in enumerate(self._entries):
            if index not in self._used:
                yield str(entry["mutants"])


def of_build_error(mutant: Mutant, language: str, build: Outcome) -> Verdict:
    return Verdict(mutant.id, language, COMPILE_ERROR, _end(build.output))


def of_run(
    mutant: Mutant, language: str, run: Outcome, failed: int, equivalents: Equivalents
) -> Verdict:
    if run.code == 0:
        reason = equivalents.reason(mutant.id, language)
        result = SURVIVED if reason is None else EQUIVALENT
        return Verdict(mutant.id, language, result, reason or "every check passed")
    if run.code != failed:
        return Verdict(mutant.id, language, CRASH, f"exit code {run.code}: {_end(run.output)}")
    line = oracle_line(run.output, mutant.about)
    if line is None:
        return Verdict(mutant.id, language, NO_LINE, _end(run.output))
    return Verdict(mutant.id, language, KILLED, line)


def oracle_line(output: str, about: Sequence[str]) -> str | None:
    """The first line of the oracle about one of these."""
    for text in output.splitlines():
        match = _ORACLE_LINE.search(text)
        if match and match["subject"] in about:
            return match[0].rstrip()
    return None


def _end(output: str) -> str:
    return "\n".join(output.strip().splitlines()[-12:])
