"""What was found: the culprits, and the error of all operations."""

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
from crosschip.ir import Model, Operation
from crosschip.ir.text import is_inline, legible
from crosschip.ops import Operator
from crosschip.ops.definition.slots import ComputedParameter, Parameter


@dataclass(frozen=True, slots=True)
class FailingOperator:
    """An operation that a device computes wrong, or several that are wrong only together.

    Attributes:
        operations: the operations.
        manner: `wrong`, `nan`, `crash`, `hang`, or `error` where the device refuses to go on.
        detail: what is wrong, in words.
        difference: of its result from what it should be; `None` where there is no result.
        part: the operations as a model.
        inputs: what that reads, by name.
        expected: what it should make, by name.
        actual: what the device computes, by name; empty where it computes nothing.
        effect: the largest error of the model's outputs if nothing else were wrong, in
            `crosschip.accuracy.error.UNIT`; infinite if there are none then, `None` where that is
            not known.
        shows: whether it is seen in the model's own outputs; `None` where that is not known.
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
        """The operations' names."""
        return tuple(operation.name for operation in self.operations)

    @property
    def title(self) -> str:
        """The operators and names, on a line."""
        return " with ".join(f"{o.type} {legible(o.name)}" for o in self.operations)

    @property
    def error(self) -> float | None:
        """Of its result, in `crosschip.accuracy.error.UNIT`; `None` where there is none."""
        return None if self.difference is None else self.difference.error

    def document(self) -> dict[str, Any]:
        """All of it but the arrays, for JSON."""
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
        device: the device that is looked at.
        against: who says what is right.
        suspects: the operations that run on the device.
        failing_operators: those that are wrong, in the model's order.
        error: that of the model's outputs on the device, in `crosschip.accuracy.error.UNIT`;
            infinite if there are none.
        mended: the same with the culprits elsewhere; `None` if that was not tried.
        explained: whether the outputs are right once the culprits run elsewhere.
        own: the error of each operation by itself, where it is known.
        sums: the error of each operation with all that comes before it, where it is known.
        exposed: whether the device showed what is inside of the model.
        options: those of `crosschip run` with which the device was made.
        runs: how many runs on the device there were.
        seconds: how long it took.
        notes: what else there is to know, a sentence each.
        whole: whether the search has come to its end.
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
        """All of it but the arrays, for JSON; what is no finite number is text."""
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

    def write(self, folder: str | Path) -> list[Path]:
        """Write the page, and for each culprit a model with inputs that reproduces it.

        Args:
            folder: where to; it is made.

        Returns:
            The paths of the page and of the culprits' folders.

        Raises:
            InputError: it cannot be written there.
        """
        # A report that nobody writes needs no drawing.
        from crosschip.bisect.report_files import write_report

        return write_report(self, Path(folder))


def slots_of(operation: Operation) -> dict[str, str]:
    """The value of each slot of an operation, in words: parameters by value, tensors by type."""
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
    """An error in words, without its unit."""
    if error is None:
        return "unknown"
    return f"{error:.2g}" if math.isfinite(error) else "none of it is a number"


def format_difference(difference: Difference) -> str:
    """A difference in words, with its units."""
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
