"""Comparison of an exported file in its engine with the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crosschip.accuracy.error import error_of
from crosschip.accuracy.rounding import RoundingProbe
from crosschip.exporters.reals import on_reals
from crosschip.hal import Sizes
from crosschip.ir import DeviceError, Model
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.quantized import reals
from crosschip.runtime.compile.front_door import compile as compile_model
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.shapes.shape_search import ShapeSearch

if TYPE_CHECKING:
    from crosschip.exporters import Exporter

MAX_ERROR = 1e-3
"""The largest error of a model of floats, in `crosschip.accuracy.error.UNIT`."""
_REFERENCE_DEVICE = "reference"


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of running an exported file.

    Attributes:
        engine: the name of the engine.
        error: the largest error of an output, in `crosschip.accuracy.error.UNIT`; the share of
            different elements for outputs of integers.
        shapes: the shapes of the random inputs, by name.
    """

    engine: str
    error: float
    shapes: dict[str, tuple[int, ...]]


def verify(model: Model, lowered: Model, content: bytes, exporter: Exporter) -> Verification:
    """Run an exported file on random inputs and compare its outputs with the reference.

    The error of a quantized model must be less than that of its quantization: engines round
    intermediate integers differently, by a step each.

    Args:
        model: the original model.
        lowered: the model that the file expresses.
        content: the content of the file.
        exporter: the format.

    Raises:
        DeviceError: the engine rejects the file, or its outputs differ; the message names them.
    """
    inputs = random_inputs(model, ShapeSearch(model, Sizes()).first())
    shapes = {name: array.shape for name, array in inputs.items()}

    def run_reference(model: Model) -> dict[str, Any]:
        with compile_model(model, [_REFERENCE_DEVICE], shapes=shapes, cache=False) as compiled:
            return dict(compiled.run(inputs))

    expected = run_reference(model)
    results = exporter.run(content, lowered, list(inputs.values()))
    actual = dict(zip(model.outputs, results, strict=True))
    errors = {name: _error(name, model, actual, expected) for name in expected}
    if max(errors.values(), default=0.0) > MAX_ERROR:
        probe = RoundingProbe(model)
        exposed = {} if probe.exposed is None else run_reference(probe.exposed)
        roundings = probe.roundings(inputs, exposed)
        errors = {
            name: _error(name, model, actual, expected, roundings.get(name, 0.0)) for name in errors
        }
    limits = dict.fromkeys(errors, MAX_ERROR)
    real = on_reals(model) if max(errors.values(), default=0.0) > MAX_ERROR else None
    if real is not None:
        unquantized = run_reference(real)
        limits = {
            name: max(MAX_ERROR, error_of([{name: right}], [{name: unquantized[name]}]))
            for name, right in _reals(model, expected).items()
        }
    wrong = [f"{name!r} by {error:.1e}" for name, error in errors.items() if error > limits[name]]
    if wrong:
        raise DeviceError(
            f"{exporter.engine} computes something else from the file than the reference from the "
            f"model: {', '.join(wrong)}, relative to the norm; please report this"
        )
    return Verification(exporter.engine, max(errors.values(), default=0.0), shapes)


def _error(
    name: str,
    model: Model,
    actual: dict[str, Any],
    expected: dict[str, Any],
    rounding: float = 0.0,
) -> float:
    """Return the error of an output, in reals if it is quantized."""
    right, computed = _reals(model, expected)[name], _reals(model, actual)[name]
    return error_of([{name: computed}], [{name: right}], [{name: rounding}])


def _reals(model: Model, outputs: dict[str, Any]) -> dict[str, Any]:
    """Return outputs, the quantized ones as the reals that they represent."""
    result = {}
    for name, value in outputs.items():
        quantization = model.outputs[name].type.quantization
        result[name] = value if quantization is None else reals(value, quantization)
    return result
