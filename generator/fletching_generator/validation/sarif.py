"""The findings as SARIF 2.1.0, for code scanning services."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from .findings import Finding, Judgement
from .rule_links import Rules
from .targets import Target

_SARIF = "2.1.0"
_SCHEMA = f"https://json.schemastore.org/sarif-{_SARIF}.json"


def as_sarif(judgement: Judgement, target: Target, rules: Rules, version: str) -> dict[str, Any]:
    ids = sorted({finding.rule for finding in judgement.findings})
    driver = {
        "name": "fletching",
        "version": version,
        "informationUri": "https://github.com/fletching/fletching",
        "rules": [
            {
                "id": rule,
                "shortDescription": {"text": rules.text(rule)},
                "helpUri": rules.link(rule),
            }
            for rule in ids
        ],
    }
    results = [_result(finding, ids.index(finding.rule), target) for finding in judgement.findings]
    waits = {wait.device: f"{wait.verdict}: {wait.about}" for wait in judgement.waits}
    run = {"tool": {"driver": driver}, "results": results, "properties": {"waits": waits}}
    return {"$schema": _SCHEMA, "version": _SARIF, "runs": [run]}


def _result(finding: Finding, rule: int, target: Target) -> dict[str, Any]:
    place = f"{finding.path}: " if finding.path else ""
    text = "\n".join([f"{place}{finding.message}", *finding.history])
    logical = finding.path or finding.case
    location = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(Path(target.file))}},
        "logicalLocations": [{"fullyQualifiedName": f"{target.name}: {logical}"}],
    }
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"finding/v1": f"{finding.rule}/{finding.party}/{logical}"},
    }


def _uri(file: Path) -> str:
    """Code scanning services show only files whose URI is relative to the root of the checkout."""
    here = Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return shown.as_uri() if shown.is_absolute() else quote(shown.as_posix())
