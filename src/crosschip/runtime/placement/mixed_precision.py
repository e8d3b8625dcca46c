"""The mixed-precision configuration: operators that compute in float32.

Listed operators of a quantized model compute on dequantized tensors. Those that devices would
compute in bfloat16 or float16 run on the same devices in float32.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.types import FLOATS
from crosschip.lowering.mixed_precision import InFloat, is_quantized
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Cast
from crosschip.passes import simplify
from crosschip.runtime.placement.allowed_devices import warn_of_unmatched
from crosschip.runtime.placement.constraints import MixedPrecisionModel
from crosschip.runtime.placement.partition import Entry, matches, parse
from crosschip.runtime.placement.sources import Source, sources_of

_ARGUMENT = "mixed_precision"

logger = logging.getLogger("crosschip")


def mix_precision(
    configuration: str | bytes | Path, model: Model, original: Model, reduced: Sequence[str]
) -> MixedPrecisionModel:
    """Return a model in which the operators of a configuration compute in float32.

    Warns of entries that match nothing or have no effect.

    Args:
        configuration: the path of a file in NNAdapter's format, or its content.
        model: the model after passes.
        original: the model before passes.
        reduced: the devices that compute in another precision than float32.

    Raises:
        InputError: the configuration cannot be read or is malformed.
    """
    entries = parse(configuration, _ARGUMENT)
    sources = sources_of(model)
    sources_by_entry = matches(entries, sources)
    unmatched = [entry for entry in entries if not sources_by_entry[entry]]
    warn_of_unmatched(_ARGUMENT, unmatched, sources, original)
    quantized = {entry: _quantized_operations(sources_by_entry[entry], model) for entry in entries}
    chosen = frozenset(operation for operations in quantized.values() for operation in operations)
    names = {operation.name for operation in chosen}
    if chosen:
        model = simplify(InFloat(chosen)(model))
    lines: dict[Operation, str] = {}
    if reduced:
        for entry, matched in matches(entries, sources_of(model)).items():
            line = f"line {entry.line} of {_ARGUMENT}, {entry.brief!r}"
            reduced_operations = [o for o in _all_of(matched) if _is_reduced(o)]
            lines.update(dict.fromkeys(reduced_operations, line))
            if not reduced_operations and sources_by_entry[entry] and not quantized[entry]:
                _warn(entry, "names nothing that computes on reals")
    else:
        for entry in entries:
            if sources_by_entry[entry] and not quantized[entry]:
                _warn(entry, _no_effect(sources_by_entry[entry], model))
    names.update(operation.name for operation in lines)
    ordered = [o.name for o in walk_operations(model) if o.name in names]
    return MixedPrecisionModel(model, tuple(dict.fromkeys(ordered)), lines)


def _quantized_operations(sources: Sequence[Source], model: Model) -> list[Operation]:
    """Return the operations of sources that compute on quantized tensors but can on floats."""
    top = frozenset(model.operations)
    return [
        operation
        for source in sources
        if _computes_on_reals(source)
        for operation in source.operations
        if operation in top and is_quantized(operation, model)
    ]


def _all_of(sources: Sequence[Source]) -> list[Operation]:
    """Return the operations of some sources, including those in their bodies."""
    operations = []
    for source in sources:
        for operation in source.operations:
            operations.append(operation)
            for body in operation.bodies:
                operations += walk_operations(body)
    return operations


def _is_reduced(operation: Operation) -> bool:
    """Return whether an operation reads or writes float32, which a lower precision changes."""
    operands: list[Operand | None] = [*operation.inputs, *operation.outputs]
    return any(o is not None and o.type.element_type is ElementType.FLOAT32 for o in operands)


def _warn(entry: Entry, why: str) -> None:
    logger.warning("%s, line %d: %r %s", _ARGUMENT, entry.line, entry.brief, why)


def _no_effect(sources: Sequence[Source], model: Model) -> str:
    """Return why the configuration has no effect on some operators."""
    fitting = [source for source in sources if _computes_on_reals(source)]
    if not fitting:
        return "names arithmetic on integers, and stays as it is"
    named = [operation for source in fitting for operation in source.operations]
    if named and frozenset(model.operations).isdisjoint(named):
        return "is in the body of a branch or loop, and stays as it is"
    return "names nothing quantized, and all else computes in float32 already"


def _computes_on_reals(source: Source) -> bool:
    """Return whether all operations of a source compute on floats or on quantized tensors.

    ONNX operators that are defined by integer arithmetic (`MatMulInteger`) are imported as such.
    """
    return all(
        operand.type.quantization is not None or operand.type.element_type in FLOATS
        for operation in source.operations
        if isinstance(operation, Operator)
        for operand in (
            *(operand for slot, operand in operation.filled() if not slot.parameter),
            *operation.outputs,
        )
    ) and not any(isinstance(operation, Cast) for operation in source.operations)
