"""Tests that every broken async table or scenario is reported with place and hint."""

from __future__ import annotations

import pytest
from conftest import Scratch

SPOILED = {
    "unknown key": (
        "async.yaml",
        "  - {on: step, in: [created]}",
        "  - {on: step, inn: [created]}",
        r"sides\.producer\.cells\[\d+\].*('in' is missing|unknown key 'inn')",
    ),
    "cell left out": (
        "async.yaml",
        "      - {on: step, in: [released]}\n",
        "",
        r"sides\.producer\.states\.released: 'released' has no cell for step; hint: add one",
    ),
    "cell filled twice": (
        "async.yaml",
        "      - {on: step, in: [released]}\n",
        "      - {on: step, in: [released, created]}\n",
        r"'step' in 'created' is filled twice; hint: remove one",
    ),
    "unknown state": (
        "async.yaml",
        "next: in_end",
        "next: in_and",
        r"no state 'in_and'; hint: use one of created,",
    ),
    "unknown event": (
        "async.yaml",
        "- {on: step, in: [schema], ",
        "- {on: tern, in: [schema], ",
        r"no event 'tern'; hint: use one of request,",
    ),
    "unknown action": (
        "async.yaml",
        "do: [mark end]",
        "do: [mark the end]",
        r"the producer cannot 'mark the end'; hint: use one of add demand,",
    ),
    "unknown condition": (
        "async.yaml",
        "when: unsent > 0",
        "when: unsent > 1",
        r'when: "unsent > 1" is unknown; hint: use one of',
    ),
    "unknown erratum": (
        "async.yaml",
        "rests_on: [async-end-refused]",
        "rests_on: [async-end-refusal]",
        r"no erratum 'async-end-refusal'; hint: add it to spec/errata\.yaml",
    ),
    "impossible without a sentence": (
        "async.yaml",
        "impossible: The source has already ended.",
        "impossible: no",
        r"impossible: .*(does not match the pattern|is not a string)",
    ),
    "impossible and done": (
        "async.yaml",
        "impossible: The source has already ended.",
        "impossible: The source has already ended.\n        next: ended",
        r"impossible cell: expected no action, got next; hint: remove one of both",
    ),
    "result of a callback without one": (
        "async.yaml",
        "- {on: step, in: [schema], ",
        "- {on: step, in: [schema], result: 0, ",
        r"'step' returns nothing; hint: fix 'result'",
    ),
    "handler called synchronously": (
        "async.yaml",
        "do: [mark end]",
        "do: [mark end, on_error]",
        r"'end_reached' calls 'on_error' synchronously; hint: move it to 'step'",
    ),
    "two handler calls at once": (
        "async.yaml",
        "do: [on_next_task NULL]",
        "do: [on_next_task NULL, release]",
        r"two handler calls at once; hint: keep one",
    ),
    "terminal state that is left": (
        "async.yaml",
        "- {on: step, in: [released]}",
        "- {on: step, in: [released], next: created}",
        r"'released' is terminal and cannot be left; hint: remove 'next'",
    ),
    "state without a way to it": (
        "async.yaml",
        "next: in_end",
        "next: ended",
        r"states\.in_end: 'in_end' cannot be reached from 'created'",
    ),
    "dead end": (
        "async.yaml",
        "- {on: returns, in: [in_release], next: released}",
        "- {on: returns, in: [in_release]}",
        r"states\.\w+: (no path from '\w+' to the end|'released' cannot be reached)",
    ),
    "last case with a condition": (
        "async.yaml",
        "            next: in_end\n          - {}\n",
        "            next: in_end\n",
        r"wrong condition: expected 'when' in every case except the last; hint:",
    ),
    "scenario with an unknown event": (
        "async-scenarios.yaml",
        "steps: [open, request 5, end]",
        "steps: [open, reqest 5, end]",
        r"scenarios\[1\]: step 4, 'reqest 5': unknown event 'reqest'",
    ),
    "scenario that cannot happen": (
        "async-scenarios.yaml",
        "steps: [open, request 5, end]",
        "steps: [open, extract, end]",
        r"scenarios\[1\]: step 4, 'extract': extract cannot happen in streaming: it needs that a",
    ),
    "scenario without an end": (
        "async-scenarios.yaml",
        "steps: [open, request 5, end]",
        "steps: [open, request 5]",
        r"scenarios\[1\]: ends in streaming; add the step 'finish'",
    ),
    "hostile without saying so": (
        "async-scenarios.yaml",
        "doc: An n of 0 is an error.\n      hostile: true\n",
        "doc: An n of 0 is an error.\n",
        r"a rule is broken; hint: add 'hostile: true'",
    ),
    "phrase in itself": (
        "async-scenarios.yaml",
        "    open: [schema_ready, step, returns_ok]",
        "    open: [schema_ready, step, returns_ok, open]",
        r"'open' is not a phrase above this one",
    ),
    "reach that ends elsewhere": (
        "async-scenarios.yaml",
        "    in_schema: [[schema_ready, step]]",
        "    in_schema: [[schema_ready]]",
        r"producer\.reach: reach\.in_schema ends in schema",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_table_reports_place_and_hint(name: str, scratch: Scratch) -> None:
    scratch.refuses(*SPOILED[name])
