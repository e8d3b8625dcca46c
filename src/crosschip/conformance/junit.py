"""The report as JUnit XML for CI systems."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from crosschip.conformance.judge import Verdict
from crosschip.conformance.report import Report


def to_junit(report: Report) -> str:
    """Return a test suite per operator; cases that did not pass or fail count as skipped."""
    root = Element("testsuites", name=f"crosschip conformance {report.title}")
    for name, entries in report.by_operator().items():
        failed = sum(entry.verdict is Verdict.FAIL for entry in entries)
        passed = sum(entry.verdict is Verdict.PASS for entry in entries)
        suite = SubElement(
            root,
            "testsuite",
            name=name,
            tests=str(len(entries)),
            failures=str(failed),
            skipped=str(len(entries) - failed - passed),
        )
        for entry in entries:
            case = SubElement(suite, "testcase", classname=name, name=entry.id)
            if entry.verdict is Verdict.FAIL:
                SubElement(case, "failure", message=_printable(entry.detail))
            elif entry.verdict is not Verdict.PASS:
                message = f"{entry.verdict.value}: {entry.detail}"
                SubElement(case, "skipped", message=_printable(message))
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Remove the characters that XML cannot represent."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
