"""The recorded run of a model on the trusted device, and comparisons with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import crosschip
from crosschip.accuracy.epsilon import epsilon_of
from crosschip.accuracy.error import relative_error
from crosschip.accuracy.rounding import explained_by_rounding
from crosschip.bisect.comparison import ROUNDINGS, Difference, difference
from crosschip.bisect.parts import Part, Values, Whole, perturb, perturb_weights
from crosschip.hal import Device, Precision
from crosschip.ir import Model, Operand, UnsupportedError
from crosschip.ir.types import FLOATS

_TRIES = 2


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of a model on a trusted device.

    Attributes:
        whole: the model.
        against: the trusted device.
        values: the value of each operand.
        precision: the arithmetic for float32 of the tested device.
        tolerance: the allowed difference relative to an output's largest element; `None` if it
            follows from rounding.
    """

    whole: Whole
    against: str | Device
    values: Values
    precision: Precision
    tolerance: float | None

    @classmethod
    def of(
        cls,
        model: Model,
        inputs: Mapping[str, Any],
        against: str | Device,
        precision: Precision,
        tolerance: float | None,
    ) -> Recording:
        """Run a model and record all operands.

        Raises:
            DeviceError: the trusted device fails.
            UnsupportedError: the trusted device and the reference together do not run the model.
        """
        whole = Whole(model)
        part = whole.exposed()
        input_values = {operand: inputs[name] for name, operand in model.inputs.items()}
        # Inputs are outputs too, to record them as devices read them.
        copies = {f"copy{index}": operand for index, operand in enumerate(part.reads.values())}
        outputs = {**part.model.outputs, **copies}
        exposed = Model(model.name, part.model.inputs, part.model.operations, outputs)
        actual = _run_model(exposed, part.inputs(input_values), against)
        values = (
            input_values | part.by_operand(actual) | {o: actual[name] for name, o in copies.items()}
        )
        return cls(whole, against, values, precision, tolerance)

    def compare(self, part: Part, outputs: Mapping[str, Any]) -> dict[str, Difference]:
        """Return the difference of each output of a part from the recorded value.

        Args:
            part: the part.
            outputs: its outputs on the tested device.
        """
        again: list[Mapping[str, Any]] = []

        def perturbed_outputs(name: str) -> Sequence[Any]:
            if not again:
                again.extend(self._perturbed_outputs(part))
            return [outputs[name] for outputs in again]

        return {
            name: difference(
                outputs[name],
                self.values[operand],
                operand.type,
                lambda name=name: perturbed_outputs(name),  # type: ignore[misc]
                depth=part.depth,
                precision=self.precision,
                tolerance=self.tolerance,
                rounding=self._rounding(part, part.model.outputs[name]),
            )
            for name, operand in part.makes.items()
        }

    def errors(self, part: Part, outputs: Mapping[str, Any]) -> dict[str, float]:
        """Return the error of each output of a part, in `crosschip.accuracy.error.UNIT`.

        Args:
            part: the part.
            outputs: its outputs on the tested device.
        """
        return {
            name: relative_error(
                outputs[name],
                self.values[operand],
                self._rounding(part, part.model.outputs[name]),
            )
            for name, operand in part.makes.items()
        }

    def _rounding(self, part: Part, output: Operand) -> float:
        """Return the absolute difference of an output of a part that rounding explains."""
        reads = {part.model.inputs[name]: operand for name, operand in part.reads.items()}
        return explained_by_rounding(
            part.model,
            output,
            lambda operand: self.values.get(reads.get(operand, operand)),
            self.precision,
        )

    def _perturbed_outputs(self, part: Part) -> Iterable[Mapping[str, Any]]:
        """Return the outputs of a part for perturbed inputs and weights."""
        step = ROUNDINGS * max(
            (
                epsilon_of(operand.type, self.precision)
                for operand in (*part.reads.values(), *part.makes.values())
                if operand.type.element_type in FLOATS
            ),
            default=0.0,
        )
        for seed in range(_TRIES):
            generator = np.random.default_rng(seed)
            inputs = {
                name: perturb(value, step, generator)
                for name, value in part.inputs(self.values).items()
            }
            yield _run_model(perturb_weights(part, step, seed), inputs, self.against)


def _run_model(model: Model, inputs: Mapping[str, Any], device: str | Device) -> Mapping[str, Any]:
    try:
        compiled = crosschip.compile(model, [device], cache=False)
    except UnsupportedError:
        if device == "reference":
            raise
        compiled = crosschip.compile(model, [device, "reference"], cache=False)
    with compiled:
        return compiled.run(inputs)
