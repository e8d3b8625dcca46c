"""The report as one self-contained HTML page without scripts, which a vendor can publish."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from crosschip.conformance.judge import Verdict
from crosschip.conformance.report import Entry, Report, reasons

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1c2733; background: #fff; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e3e8ee;
  vertical-align: top; overflow-wrap: anywhere; }
th { overflow-wrap: normal; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.bar { display: flex; height: .8rem; border-radius: .4rem; overflow: hidden; margin: 1rem 0; }
.pass { background: #2e9e6b; } .unsupported { background: #c9d2dc; } .fail { background: #d4404a; }
.excluded { background: #e0a63a; } .not_run { background: #7b8794; }
.key span { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem;
  margin: 0 .35rem 0 1rem; vertical-align: -1px; }
.type { display: inline-block; padding: 0 .4rem; margin: 0 .25rem .2rem 0; border-radius: .3rem;
  background: #e4f4ec; font-size: 13px; }
.type.bad { background: #fbe3e4; } .type.none { background: #eef1f4; color: #66727f; }
summary { cursor: pointer; color: #47535f; }
"""

_NAMES = {
    Verdict.PASS: "pass",
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.FAIL: "fail",
    Verdict.EXCLUDED: "excluded",
    Verdict.NOT_RUN: "not run",
}


def to_html(report: Report) -> str:
    """Return the page: counts, failures and commands that repeat them, operators by type."""
    title = escape(f"{report.title}: crosschip conformance")
    parts = [
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>",
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(report.device)}</h1>",
        f"<p>{escape(_about(report))}</p>",
        _bar(report),
        _failures(report),
        _exclusions(report),
        _operators(report),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _about(report: Report) -> str:
    cases = f"{len(report.entries)} cases"
    return ", ".join([f"version {report.version}", cases, f"seed {report.seed}", *report.asked_for])


def _bar(report: Report) -> str:
    total = max(1, len(report.entries))
    shares = "".join(
        f'<div class="{verdict.value}" style="width:{100 * count / total:.2f}%"></div>'
        for verdict in Verdict
        if (count := report.counts[verdict.value])
    )
    key = "".join(
        f'<span class="{verdict.value}"></span>{report.counts[verdict.value]} {name}'
        for verdict, name in _NAMES.items()
    )
    return f'<div class="bar">{shares}</div><p class="key">{key}</p>'


def _failures(report: Report) -> str:
    if not report.failed:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(entry.id)}</code></td><td>{escape(entry.detail)}</td></tr>\n"
        for entry in report.failed
    )
    same = ", with the options above" if report.asked_for else ""
    repeat = f"crosschip conformance {report.device} --seed {report.seed} --case"
    return (
        f"<h2>{len(report.failed)} failures</h2>"
        f"<p>To repeat one: <code>{escape(repeat)} CASE</code>{same}</p>"
        f"<table><tr><th>case</th><th>what is wrong</th></tr>\n{rows}</table>"
    )


def _exclusions(report: Report) -> str:
    excluded = [entry for entry in report.entries if entry.verdict is Verdict.EXCLUDED]
    if not excluded:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(entry.id)}</code></td><td>{escape(entry.detail)}</td></tr>\n"
        for entry in excluded
    )
    return f"<h2>{len(excluded)} exclusions</h2><table>{rows}</table>"


def _operators(report: Report) -> str:
    head = "<tr><th>operator</th><th>types</th><th class=n>pass</th><th class=n>fail</th>"
    head += "<th class=n>unsupported</th><th>why not</th></tr>"
    rows = "".join(_operator(name, entries) for name, entries in report.by_operator().items())
    return f"<h2>Operators</h2><table>{head}\n{rows}</table>"


def _operator(name: str, entries: Sequence[Entry]) -> str:
    counts = {v: sum(entry.verdict is v for entry in entries) for v in Verdict}
    types = "".join(
        _type(type_, [entry for entry in entries if entry.element_type == type_])
        for type_ in dict.fromkeys(entry.element_type for entry in entries)
        if type_
    )
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{types}</td>"
        f"<td class=n>{counts[Verdict.PASS]}</td><td class=n>{counts[Verdict.FAIL] or ''}</td>"
        f"<td class=n>{counts[Verdict.UNSUPPORTED] or ''}</td><td>{_why_not(entries)}</td></tr>\n"
    )


def _type(name: str, entries: Sequence[Entry]) -> str:
    verdicts = {entry.verdict for entry in entries if "/invalid-" not in entry.id}
    if not verdicts:
        return ""
    shade = "" if Verdict.PASS in verdicts else " none"
    shade = " bad" if Verdict.FAIL in verdicts else shade
    return f'<span class="type{shade}">{escape(name)}</span>'


def _why_not(entries: Sequence[Entry]) -> str:
    counted = reasons(entries)
    if not counted:
        return ""
    items = "".join(f"<li>{escape(reason)} ({count})</li>" for reason, count in counted)
    return f"<details><summary>{len(counted)} reasons</summary><ul>{items}</ul></details>"
