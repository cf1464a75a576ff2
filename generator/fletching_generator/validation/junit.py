"""The cases as JUnit XML, for continuous integration."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from .findings import Case, Judgement
from .targets import Target

# Characters that XML 1.0 excludes. The text of a library may have any.
_EXCLUDED = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(judgement: Judgement, target: Target) -> str:
    suites = ElementTree.Element("testsuites", name="fletching validate")
    suite = ElementTree.SubElement(suites, "testsuite", name=target.name)
    failures = 0
    for case in judgement.cases:
        failures += _add_case(suite, case)
    suite.set("tests", str(len(judgement.cases)))
    suite.set("failures", str(failures))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, case: Case) -> bool:
    """Returns whether the case has failed."""
    group, _, name = case.name.partition("/")
    element = ElementTree.SubElement(suite, "testcase", classname=group, name=_clean(name))
    failures = [finding for finding in case.findings if finding.severity != "note"]
    text = f"{case.wait.verdict}: {case.wait.about}" if case.wait else case.verdict
    if case.verdict in ("not-supported", "absent"):
        ElementTree.SubElement(element, "skipped", message=_clean(text))
    for finding in failures:
        message = _clean(f"{finding.path}: {finding.message}" if finding.path else finding.message)
        failure = ElementTree.SubElement(element, "failure", type=finding.rule, message=message)
        failure.text = _clean("\n".join(finding.history))
    if case.wait:
        ElementTree.SubElement(element, "system-out").text = _clean(text)
    return bool(failures)


def _clean(text: str) -> str:
    return _EXCLUDED.sub("\ufffd", text)
