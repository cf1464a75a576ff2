# ruff: noqa: E501 -- one line for each example
"""Tests the async table and its traces against the protocol's rules and hand-written answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from async_producer_rules import Observation
from async_walk import rules, start, walk
from conftest import REPOSITORY, trace_texts
from jsonschema import Draft202012Validator

from fletching_generator.async_stream.table import Scenario, Side, SideName
from fletching_generator.async_stream.traces import run_scenario, sweeps, trace
from fletching_generator.spec.model import Spec

SIDES: tuple[SideName, ...] = ("producer", "consumer")


def read_traces(side: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(trace_texts()[f"{side}.json"])["traces"]
    return found


@pytest.mark.parametrize("name", SIDES)
def test_every_path_through_table_keeps_rules(name: SideName, spec: Spec) -> None:
    side: Side = getattr(spec.async_table, name)
    walked = list(walk(side, [start(side)]))
    assert [(w.place, w.event, w.broken) for w in walked if w.broken] == []
    used = {(w.place.config.state, w.event, w.case) for w in walked}
    every = {(cell.state, cell.event, case) for cell in side.possible for case in cell.cases}
    assert used == every


@pytest.mark.parametrize("name", SIDES)
def test_traces_cover_every_case(name: SideName, spec: Spec) -> None:
    table = spec.async_table
    side: Side = getattr(table, name)
    scenarios = (*table.scenarios[name].scenarios, *sweeps(table, side))
    used = {key for scenario in scenarios for key in run_scenario(table, side, scenario).taken}
    every = {(cell.state, cell.event, case) for cell in side.possible for case in cell.cases}
    assert every - used == set()


@pytest.mark.parametrize("name", SIDES)
def test_traces_match_schema(name: str) -> None:
    schema = REPOSITORY / "spec" / "schema" / "traces.schema.json"
    validator = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    content = json.loads(trace_texts()[f"{name}.json"])
    assert [error.message for error in validator.iter_errors(content)] == []
    content["traces"][0]["steps"][0]["sate"] = "created"
    assert not validator.is_valid(content), "the schema is closed"


@pytest.mark.parametrize("name", SIDES)
def test_traces_cover_hostile_and_regular_peers(name: str) -> None:
    traces = read_traces(name)
    assert len({trace["name"] for trace in traces}) == len(traces)
    assert sum(not trace["hostile"] for trace in traces) > 60
    assert sum(trace["hostile"] for trace in traces) > 30


@pytest.mark.parametrize("name", SIDES)
def test_traces_keep_rules(name: SideName, spec: Spec) -> None:
    """Checks every step, and the fates of schema and batches, using only the trace files."""
    module = rules(getattr(spec.async_table, name))
    for found in read_traces(name):
        facts, fates = module.Facts(), {}
        for step in found["steps"]:
            seen = read_step(step)
            assert module.broken(facts, seen) == [], (found["name"], step)
            if seen.result and "task" in step and step["event"].startswith(("on_", "overlap")):
                fates[step["task"]] = "refused"
            elif seen.result and step["event"].startswith("on_schema"):
                fates.setdefault("schema", "refused")
            for thing, fate in module.fates(facts, seen):
                assert thing not in fates, found["name"]
                fates[thing] = fate
            facts = module.after(facts, seen)
        final = found["finally"]
        assert final["state"] == "released", found["name"]
        assert final["schema"] == fates.pop("schema", "none"), found["name"]
        assert final["tasks"] == [fates[number] for number in sorted(fates)], found["name"]


def read_step(step: dict[str, Any]) -> Observation:
    return Observation(
        event=step["event"],
        n=step.get("n", 0),
        task=step.get("task", step.get("batch", 0)),
        errno=step.get("errno", 0),
        calls=tuple(tuple(call.values()) for call in step.get("calls", ())),
        notifications=tuple(tuple(n.values()) for n in step.get("notifications", ())),
        result=step.get("result"),
        state=step["state"],
        holds=step.get("returns") is False,
        lets_return="then_returns" in step,
    )


# Hand-written from the published page and the errata: events, and after `>` their effects.
BY_HAND = {
    "producer": [
        "schema_ready; step > on_schema; returns_ok; end_reached; step > end; returns_ok; step > release; returns",
        "schema_ready; step > on_schema; returns_ok; batch_ready; step; request 1; step > task 0; returns_ok",
        "schema_ready; step > on_schema; request 2; batch_ready; step; returns_ok; step > task 0",
        "schema_ready; step > on_schema; returns_ok; request 1; batch_ready; batch_ready; step > task 0; returns_ok; step; request 1; step > task 1",
        "failure 5; step > error 5; returns; step > release; returns",
        "schema_ready; failure 12; step > error 12; returns; step > release",
        "schema_ready; step > on_schema; returns_error 5; step > release; returns",
        "schema_ready; step > on_schema; failure 5; returns_ok; step > error 5; returns; step > release",
        "schema_ready; step > on_schema; failure 5; returns_error 12; step > release",
        "schema_ready; step > on_schema; returns_ok; request_invalid 0; step > error 22; returns; step > release",
        "schema_ready; step > on_schema; request_invalid -1; returns_ok; step > error 22",
        "schema_ready; step > on_schema; returns_ok; cancel; step > release; cancel; returns",
        "schema_ready; step > on_schema; returns_ok; cancel; request_invalid 0; failure 5; step > release",
        "schema_ready; step > on_schema; cancel; returns_ok; step > release",
        "schema_ready; step > on_schema; returns_ok; failure 5; cancel; step > error 5; returns; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_ok; extract 0 > 0; extract_again 0 > 22",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; extract 0 > 0; returns_error 5; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_error 5; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_ok; end_reached; step > end; returns_ok; step; extract_drop 0 > 0; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_ok; failure 5; step > error 5; returns; step; extract 0 > 0; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_ok; extract_fails 12 > 12; step > error 12; returns; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; returns_ok; cancel; extract_fails 12 > 12; step > release",
        "schema_ready; step > on_schema; request 1; returns_ok; batch_ready; step > task 0; cancel; step; returns_ok; step; extract 0 > 0; step > release",
        "request 1; schema_ready; batch_ready; step > on_schema; returns_ok; step > task 0",
        "cancel; schema_ready; step > release; returns; request 1; cancel; step",
    ],
    "consumer": [
        "on_schema > schema, 0; on_end > end, 0; release",
        "on_schema > schema, 0; request 1 > request 1; on_task > task 0, 0; take > data 0; extract_ok; on_end > end, 0; release",
        "request 2; request 3; on_schema > request 5, schema, 0",
        "cancel; on_schema > cancel, 0; release",
        "on_schema > schema, 0; cancel > cancel; cancel; request 1; release",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; cancel > cancel, drop 0; on_task > drop 1, 0; on_end > 0; release",
        "on_schema > schema, 0; request 1 > request 1; on_task > task 0, 0; on_task > drop 0, error 22, 22; release",
        "on_task > error 22, 22; release",
        "on_schema > schema, 0; on_schema > error 22, 22; on_schema > 22; release",
        "on_error 5 > error 5; release",
        "on_schema > schema, 0; on_error 12 > error 12; on_error 5; request 1; cancel; release",
        "on_schema > schema, 0; on_error_foreign_code 0 > error 5; release",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; on_task > task 1, 0; on_error 5 > drop 0, drop 1, error 5; release",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; on_task > task 1, 0; on_end > end, 0; release > data 0, data 1",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; on_end > end, 0; on_task > 22; on_end > 22; drop > drop 0; release",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; on_task > task 1, 0; take > data 0; extract_fails 5 > drop 1; on_error 5; release",
        "on_schema > schema, 0; request 2 > request 2; on_task > task 0, 0; on_task > task 1, 0; take > data 0; extract_invalid > cancel, drop 1; cancel; release",
        "on_schema > schema, 0; request 1 > request 1; on_task > task 0, 0; take > data 0; on_end > end, 0; release > held; extract_ok > returns",
        "on_schema > schema, 0; request 1 > request 1; on_task_refused 12 > error 12, 12; release",
        "on_schema_refused 22 > error 22, 22; on_task > 22; release",
        "on_schema > schema, 0; release > error 5; release; on_end > 22",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(n, t) for n in SIDES for t in BY_HAND[n]])
def test_simulation_matches_handwritten_answers(name: SideName, text: str, spec: Spec) -> None:
    side: Side = getattr(spec.async_table, name)
    lines = [[part.strip() for part in line.split(">")] for line in text.split(";")]
    scenario = Scenario("by-hand", "", True, tuple([line[0] for line in lines] + ["finish"]))
    steps = trace(spec.async_table, side, scenario)["steps"]
    expected = [line[1] if len(line) > 1 else "" for line in lines]
    assert [spell(step) for step in steps[: len(lines)]] == expected


def spell(step: dict[str, Any]) -> str:
    words = [_spell_call(call) for call in step.get("calls", ())]
    words += [_spell_call({"call": n["notify"], **n}) for n in step.get("notifications", ())]
    words += [str(step["result"])] if "result" in step else []
    words += ["held"] if step.get("returns") is False else []
    words += ["returns"] if "then_returns" in step else []
    return ", ".join(words)


def _spell_call(call: dict[str, Any]) -> str:
    name = call["call"].replace("on_error", "error")
    match name:
        case "on_next_task":
            return "end" if call["task"] is None else f"task {call['task']}"
        case "extract_data":
            return f"{'data' if call['out'] else 'drop'} {call['task']}"
        case _:
            number = call.get("n", call.get("code", call.get("task")))
            return name if number is None else f"{name} {number}"
