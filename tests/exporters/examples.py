"""The operators' own examples, written as files and run by the format's engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from crosschip.conformance.tolerance import difference, sensitivity, tolerance
from crosschip.devices.reference import ReferenceProgram
from crosschip.exporters import Exporter
from crosschip.hal import CompileError
from crosschip.ir import Array, DeviceError, Model
from crosschip.ops import Operator
from crosschip.ops.definition.examples import arrays_for, examples_of, model_of, samples
from crosschip.ops.definition.registry import operators
from crosschip.passes import simplify


@dataclass(frozen=True)
class Outcome:
    """What became of one example.

    Attributes:
        operator: the operator.
        number: the number of the example.
        refusal: why the format does not express it; empty if it does.
        fault: what is wrong with the engine's outputs; empty if nothing is.
    """

    operator: str
    number: int
    refusal: str = ""
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.operator}/{self.number}: {self.refusal or self.fault}"


def outcomes(
    exporter: Exporter, properties: Mapping[str, str], every: int, first: int = 0
) -> Iterator[Outcome]:
    """Write and run each `every`th example, from the `first` one."""
    uses = [
        (operator, number, arguments)
        for operator in operators().values()
        for number, arguments in enumerate(examples_of(operator))
    ]
    for operator, number, arguments in uses[first::every]:
        yield _outcome(exporter, properties, operator, number, arguments)


def _outcome(
    exporter: Exporter,
    properties: Mapping[str, str],
    operator: type[Operator],
    number: int,
    arguments: Mapping[str, object],
) -> Outcome:
    model, arrays = model_of(operator, arguments), arrays_for(arguments)
    inputs = [arrays[name] for name in model.inputs]
    try:
        lowered = exporter.lower(simplify(model), properties)
        content = exporter.write(lowered, properties)
    except CompileError as error:
        return Outcome(operator.type, number, refusal=str(error))
    expected = ReferenceProgram(model).run(inputs)
    try:
        results = exporter.run(content, lowered, inputs)
    except DeviceError as error:
        return Outcome(operator.type, number, fault=str(error))
    random = [name for name, sample in samples(arguments) if sample.value is None]
    fault = _fault(model, inputs, random, list(results), list(expected))
    return Outcome(operator.type, number, fault=fault)


def _fault(
    model: Model,
    inputs: list[Array],
    random: list[str],
    results: list[Array],
    expected: list[Array],
) -> str:
    """Return the first fault of an output that rounding does not explain, or an empty text."""
    for index, output in enumerate(model.outputs.values()):
        allowed = tolerance(output.type, inputs)
        result, right = np.require(results[index], requirements="C"), expected[index]
        if difference(result, right, output.type, allowed):
            moved = sensitivity(model, inputs, random, expected)[index]
            fault = difference(result, right, output.type, allowed, moved)
            if fault:
                return fault
    return ""
