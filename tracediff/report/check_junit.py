"""`Gate` → JUnit's XML: a test case for each limit."""

from __future__ import annotations

from xml.etree import ElementTree as xml

from tracediff.diff.gate.judge import INCONCLUSIVE, REGRESSION, Gate, Judged
from tracediff.errors import printable
from tracediff.present.check import explanation, sentence

SUITE = "tracediff check"


def to_junit(gate: Gate) -> str:
    """The document: exceeded limits are failures, inconclusive ones skipped, waived ones pass with a note."""
    totals = {
        "tests": len(gate.judged),
        "failures": len(gate.with_result(REGRESSION)),
        "skipped": len(gate.with_result(INCONCLUSIVE)),
        "errors": 0,
    }
    attributes = {"name": SUITE, **{k: str(v) for k, v in totals.items()}}
    root = xml.Element("testsuites", attributes)
    suite = xml.SubElement(root, "testsuite", attributes)
    for judged in gate.judged:
        _case(suite, judged)
    xml.SubElement(suite, "system-out").text = printable(sentence(gate))
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=False).join(
        ("<?xml version='1.0' encoding='utf-8'?>\n", "\n")
    )


def _case(suite: xml.Element, judged: Judged) -> None:
    case = xml.SubElement(
        suite, "testcase", {"name": printable(judged.figure.subject), "classname": SUITE.replace(" ", ".")}
    )
    message = printable(explanation(judged))
    if judged.result == REGRESSION:
        xml.SubElement(case, "failure", {"type": REGRESSION, "message": message}).text = message
    elif judged.result == INCONCLUSIVE:
        xml.SubElement(case, "skipped", {"message": message})
    else:
        xml.SubElement(case, "system-out").text = message
