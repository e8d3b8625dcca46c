"""Reports: counts by operator and type, failures, and why cases are unsupported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosschip.conformance.cases import Case, use_in_words
from crosschip.conformance.judge import Result, Verdict
from crosschip.drawing.tables import Table, to_html
from crosschip.hal import Options
from crosschip.runtime.plain import to_plain


@dataclass(frozen=True, slots=True)
class Entry:
    """A case with its result.

    Attributes:
        validation: whether it tests crosschip's own validation instead of the device.
        smallest: the smallest use that fails in the same manner, for a random case that fails.
        use: the tested use in words, if it fails; empty for a random case.
    """

    id: str
    operator: str
    element_type: str
    verdict: Verdict
    detail: str
    validation: bool = False
    smallest: str = ""
    use: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a run of the kit on a device.

    Attributes:
        options: the compile options.
        properties: the device's properties.
        entries: the cases that test the device.
        validation: the cases that test crosschip's own validation.
        whole: whether the run was not interrupted.
    """

    device: str
    version: str
    seed: int
    entries: tuple[Entry, ...]
    validation: tuple[Entry, ...] = ()
    whole: bool = True
    options: Options = field(default=Options())
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        device: str,
        version: str,
        cases: Sequence[Case],
        results: Mapping[str, Result],
        seed: int,
        *,
        options: Options | None = None,
        properties: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> Report:
        """Build the report of cases from their results; a case without a result was not run."""
        entries = []
        for case in cases:
            none = Result(case.id, Verdict.NOT_RUN, "the run ended before")
            result = results.get(case.id, none)
            entries.append(
                Entry(
                    case.id,
                    case.operator,
                    case.element_type,
                    result.verdict,
                    result.detail,
                    bool(case.invalid),
                    result.smallest,
                    use_in_words(case) if result.verdict is Verdict.FAIL else "",
                )
            )
        own = tuple(entry for entry in entries if not entry.validation)
        validation = tuple(entry for entry in entries if entry.validation)
        requested, settings = options or Options(), dict(properties or {})
        return cls(device, version, seed, own, validation, whole, requested, settings)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of cases with each verdict, by its name."""
        return _counts(self.entries)

    @property
    def failed(self) -> Sequence[Entry]:
        """The failures, including those of validation."""
        all_entries = (*self.entries, *self.validation)
        return [entry for entry in all_entries if entry.verdict is Verdict.FAIL]

    @property
    def title(self) -> str:
        """The device, its version, and the options other than the default ones."""
        return ", ".join([f"{self.device} {self.version}", *self.asked_for])

    @property
    def asked_for(self) -> Sequence[str]:
        """The options other than the default ones, and the properties, in words."""
        default = to_plain(Options())
        plain = to_plain(self.options)
        changed = {name: value for name, value in plain.items() if value != default[name]}
        return [f"{name} {value}" for name, value in {**changed, **self.properties}.items()]

    def by_operator(self) -> Mapping[str, Sequence[Entry]]:
        """Group the entries by operator, in the order of the cases."""
        grouped: dict[str, list[Entry]] = {}
        for entry in self.entries:
            grouped.setdefault(entry.operator, []).append(entry)
        return grouped

    def _repr_html_(self) -> str:
        verdicts = [verdict.value for verdict in Verdict if self.counts[verdict.value]]
        rows = [
            (name, *(_counts(entries)[verdict] or "" for verdict in verdicts))
            for name, entries in self.by_operator().items()
        ]
        failures = [(entry.id, entry.detail, entry.use) for entry in self.failed]
        tables = [Table("Operators", ("operator", *verdicts), rows, verdicts)]
        if failures:
            tables.append(Table("Failures", ("case", "detail", "use"), failures))
        counts = ", ".join(f"{self.counts[name]} {name.replace('_', ' ')}" for name in verdicts)
        notes = [f"{len(self.entries)} cases: {counts}"]
        if not self.whole:
            notes.append("the run was interrupted")
        return to_html(f"Conformance of {self.title}", tables, notes)

    def document(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {
            "device": self.device,
            "version": self.version,
            "seed": self.seed,
            "options": to_plain(self.options),
            "properties": dict(self.properties),
            "whole": self.whole,
            "cases": len(self.entries),
            **self.counts,
            "validation": {"cases": len(self.validation), **_counts(self.validation)},
            "operators": {
                name: {
                    "cases": len(entries),
                    **_counts(entries),
                    "types": sorted({e.element_type for e in entries if _ran(e)} - {""}),
                    "reasons": dict(reasons(entries)),
                }
                for name, entries in self.by_operator().items()
            },
            "failures": [
                {"id": e.id, "use": e.use, "detail": e.detail, "smallest": e.smallest}
                for e in self.failed
            ],
            "exclusions": [
                {"id": e.id, "reason": e.detail}
                for e in self.entries
                if e.verdict is Verdict.EXCLUDED
            ],
            "verdicts": {
                entry.id: entry.verdict.value for entry in (*self.entries, *self.validation)
            },
        }


def reasons(entries: Sequence[Entry]) -> Sequence[tuple[str, int]]:
    """Return the reasons why cases are unsupported with their counts, the most frequent first."""
    counts = Counter(e.detail for e in entries if e.verdict is Verdict.UNSUPPORTED)
    return counts.most_common()


def _counts(entries: Sequence[Entry]) -> dict[str, int]:
    counts = Counter(entry.verdict for entry in entries)
    return {verdict.value: counts[verdict] for verdict in Verdict}


def _ran(entry: Entry) -> bool:
    return entry.verdict in (Verdict.PASS, Verdict.FAIL)
