"""Every rule has a violating case and a valid one, or a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from languages import ROOT
from rule_cases import Cases, broken_cases, corpus_cases, layer_cases, problems, rows, sources
from rule_tables import letters
from test_rule_tables import THE_RULES

FOUND = sources(ROOT)


def test_every_rule_has_cases_or_reason() -> None:
    assert list(problems(THE_RULES, FOUND)) == []


@pytest.mark.parametrize("source", range(1, len(FOUND)))
def test_unpaired_rule_is_reported(source: int) -> None:
    """Without one of the sources, the rules that have no other case are missing."""
    others: list[Cases] = [*FOUND[:source], *FOUND[source + 1 :]]
    missing = {problem.partition(":")[0] for problem in problems(THE_RULES, others)}
    alone = FOUND[source].keys() - {rule for cases in others for rule in cases}
    assert missing == {r.id for r, *_ in rows(THE_RULES, FOUND) if letters(r.id) in alone}
    assert missing


def test_reason_for_rule_with_cases_is_reported() -> None:
    rule = next(rule for rule in THE_RULES if rule.id == "layout.utf8")
    assert rule.no_case is None
    found = list(problems([replace(rule, no_case="it is hard")], FOUND))
    assert found == ["layout.utf8: no_case: it has one, Arrays.LayoutUtf8: remove the reason"]


def test_each_source_pairs_cases() -> None:
    assert corpus_cases(ROOT)["layoutviewprefix"] == (
        "corpus utf8-view.prefix-bad",
        "corpus utf8-view.prefix-good",
    )
    broken = broken_cases(ROOT)
    assert broken["streamerrnocodes"][0] == "Streams.StreamErrnoCodes"
    assert broken["streamerrnocodes"][1].startswith("Streams stream.")
    assert broken["layoututf8"] == ("Arrays.LayoutUtf8", "Arrays utf8.whole")
    layer = layer_cases(next(ROOT.glob("*/tests/validate")))
    assert {"streamcallsserialized", "devicestreamcallsserialized"} <= layer.keys()
    assert "asyncrequestnotexceeded" in layer
