"""The report: the failing operators, and the errors of all operations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.accuracy.error import UNIT
from crosschip.bisect.comparison import Difference
from crosschip.bisect.parts import Part
from crosschip.drawing.tables import Table, to_html
from crosschip.ir import Model, Operation
from crosschip.ir.text import is_inline, legible
from crosschip.ops import Operator
from crosschip.ops.definition.slots import ComputedParameter, Parameter


@dataclass(frozen=True, slots=True)
class FailingOperator:
    """An operation that a device computes wrong, or several that are wrong only together.

    Attributes:
        operations: the operations.
        manner: `wrong`, `nan`, `crash`, `hang`, or `error` if the device raises an error.
        detail: the problem, in words.
        difference: the difference from the expected result; `None` if there is no result.
        part: the operations as a model.
        inputs: the inputs of `part`, by name.
        expected: the expected outputs, by name.
        actual: the device's outputs, by name; empty if there are none.
        effect: the largest error of the model's outputs with this failure alone, in
            `crosschip.accuracy.error.UNIT`; infinite without outputs, `None` if unknown.
        shows: whether the model's outputs are wrong because of it; `None` if unknown.
    """

    operations: Sequence[Operation]
    manner: str
    detail: str
    difference: Difference | None
    part: Part
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]
    effect: float | None = None
    shows: bool | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operations."""
        return tuple(operation.name for operation in self.operations)

    @property
    def title(self) -> str:
        """The operators and names, on a line."""
        return " with ".join(f"{o.type} {legible(o.name)}" for o in self.operations)

    @property
    def error(self) -> float | None:
        """The error of the result, in `crosschip.accuracy.error.UNIT`; `None` without a result."""
        return None if self.difference is None else self.difference.error

    def document(self) -> dict[str, Any]:
        """Return all fields except for the arrays, as JSON values."""
        difference = self.difference
        return {
            "operations": [
                {
                    "operator": operation.type,
                    "name": operation.name,
                    "slots": slots_of(operation),
                    "origins": [
                        f"{o.type}:{','.join(o.inputs)}:{','.join(o.outputs)}"
                        for o in operation.origins
                    ],
                }
                for operation in self.operations
            ],
            "manner": self.manner,
            "detail": self.detail,
            "error": _number(self.error),
            "largest_difference": _number(None if difference is None else difference.largest),
            "explained_by_rounding": _number(None if difference is None else difference.explained),
            "shows": self.shows,
            "effect": _number(self.effect),
        }

    def __str__(self) -> str:
        return f"{self.title}: {self.detail}"


@dataclass(slots=True)
class Report:
    """The outcome of a search.

    Attributes:
        model: the model, as it was placed.
        device: the tested device.
        against: the trusted device.
        suspects: the operations that run on the device.
        failing_operators: the operators that are wrong, in the model's order.
        error: the error of the model's outputs on the device, in `crosschip.accuracy.error.UNIT`;
            infinite without outputs.
        mended: the same with the failing operators on the trusted device; `None` if not tried.
        explained: whether the outputs are right then.
        own: the known errors of single operations with recorded inputs.
        sums: the known errors of operations after all preceding ones on the device.
        exposed: whether the device showed the results of all operations.
        options: the options of `crosschip run` that reproduce the device's settings.
        runs: the number of runs on the device.
        seconds: the duration of the search.
        notes: further remarks, a sentence each.
        whole: whether the search was completed.
    """

    model: Model
    device: str
    against: str
    suspects: Sequence[Operation]
    failing_operators: list[FailingOperator] = field(default_factory=list)
    error: float | None = None
    mended: float | None = None
    explained: bool = True
    own: dict[Operation, Difference] = field(default_factory=dict)
    sums: dict[Operation, float] = field(default_factory=dict)
    exposed: bool = False
    options: Sequence[str] = ()
    runs: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    whole: bool = True

    @property
    def summary(self) -> str:
        """The outcome in a sentence."""
        many = len(self.failing_operators)
        result = {0: "nothing wrong found", 1: "1 culprit"}.get(many, f"{many} culprits")
        return (
            f"{result} among {len(self.suspects)} operations on {self.device}, "
            f"in {self.runs} runs and {self.seconds:.1f} s"
        )

    def document(self) -> dict[str, Any]:
        """Return all fields except for the arrays, as JSON values; infinite numbers are text."""
        return {
            "model": self.model.name,
            "device": self.device,
            "against": self.against,
            "operations": len(self.model.operations),
            "suspects": len(self.suspects),
            "culprits": [operator.document() for operator in self.failing_operators],
            "error_unit": UNIT,
            "error": _number(self.error),
            "mended": _number(self.mended),
            "explained": self.explained,
            "exposed": self.exposed,
            "errors": [
                {
                    "name": operation.name,
                    "operator": operation.type,
                    "own": _number(self.own[operation].error) if operation in self.own else None,
                    "sum": _number(self.sums.get(operation)),
                }
                for operation in self.model.operations
            ],
            "runs": self.runs,
            "seconds": self.seconds,
            "notes": self.notes,
            "whole": self.whole,
        }

    def _repr_html_(self) -> str:
        rows = [
            (operator.manner, operator.title, operator.detail, format_error(operator.error))
            for operator in self.failing_operators
        ]
        table = Table("Culprits", ("manner", "operations", "detail", f"error ({UNIT})"), rows)
        notes = [self.summary, *self.notes]
        return to_html(f"{self.model.name} on {self.device}", [table] if rows else [], notes)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the page, and for each failing operator a model with inputs that reproduces it.

        Args:
            folder: the folder, which is created.

        Returns:
            The paths of the page and of the operators' folders.

        Raises:
            InputError: the files cannot be written.
        """
        # Imported late: most reports are only printed.
        from crosschip.bisect.report_files import write_report

        return write_report(self, Path(folder))


def slots_of(operation: Operation) -> dict[str, str]:
    """Return the text of each slot of an operation: a parameter's value, a tensor's type."""
    texts: dict[str, str] = {}
    for slot, operand in operation.named_inputs():
        text = operation.symbol(slot, operand)
        if text is None and is_inline(operand):
            text = str(np.asarray(operand.value).tolist())
        if text is None:
            text = f"{operand.type}{' constant' if operand.is_constant else ''}"
        texts[slot] = f"{texts[slot]}, {text}" if slot in texts else text
    return dict(_defaults(operation)) | texts


def _defaults(operation: Operation) -> Iterator[tuple[str, str]]:
    if isinstance(operation, Operator):
        for slot in operation.slots:
            if isinstance(slot, Parameter):
                try:
                    value = getattr(operation, slot.name)
                except ComputedParameter:
                    continue
                yield slot.name, str(getattr(value, "name", value))


def format_error(error: float | None) -> str:
    """Return an error in words, without its unit."""
    if error is None:
        return "unknown"
    return f"{error:.2g}" if math.isfinite(error) else "none of it is a number"


def format_difference(difference: Difference) -> str:
    """Return a difference in words, with its unit."""
    if not math.isfinite(difference.largest):
        return f"error {format_error(difference.error)}"
    return (
        f"the furthest element is {difference.largest:.2g} off, of which rounding explains "
        f"{difference.explained:.2g}; error of the result {format_error(difference.error)} ({UNIT})"
    )


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity"
