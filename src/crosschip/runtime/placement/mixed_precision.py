"""The configuration of mixed precision: operators of a quantized model that compute in float32."""

from __future__ import annotations

import logging
from pathlib import Path

from crosschip.ir import Model, Operation
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Cast
from crosschip.passes import simplify
from crosschip.passes.in_float import InFloat, is_quantized
from crosschip.runtime.placement.constraining import warn_of_unmatched
from crosschip.runtime.placement.partition import matches, parse
from crosschip.runtime.placement.sources import Source, sources_of

_ARGUMENT = "mixed_precision"

logger = logging.getLogger("crosschip")


def in_float(
    configuration: str | bytes | Path, model: Model, given: Model
) -> tuple[Model, tuple[str, ...]]:
    """The model with the operators in float32 that a configuration lists.

    Warns of entries that match nothing, or nothing that is quantized.

    Args:
        configuration: the path of a file of NNAdapter's form, or its content.
        model: after passes.
        given: the model before passes.

    Returns:
        The model, and the names of the operations that compute in float32 now.

    Raises:
        InputError: the configuration cannot be read, or is not of its form.
    """
    entries = parse(configuration, _ARGUMENT)
    sources = sources_of(model)
    found = matches(entries, sources)
    warn_of_unmatched(_ARGUMENT, [entry for entry in entries if not found[entry]], sources, given)
    top = frozenset(model.operations)
    chosen: dict[Operation, None] = {}
    for entry in entries:
        fitting = [source for source in found[entry] if _computes_on_reals(source)]
        named = [operation for source in fitting for operation in source.operations]
        quantized = [o for o in named if o in top and is_quantized(o, model)]
        chosen.update(dict.fromkeys(quantized))
        if quantized or not found[entry]:
            continue
        why = "names nothing quantized"
        if not fitting:
            why = "names arithmetic on integers, and stays as it is"
        elif named and top.isdisjoint(named):
            why = "is in the body of a branch or loop, and stays as it is"
        logger.warning("%s, line %d: %r %s", _ARGUMENT, entry.line, entry.text, why)
    if not chosen:
        return model, ()
    names = tuple([operation.name for operation in model.operations if operation in chosen])
    return simplify(InFloat(frozenset(chosen))(model)), names


def _computes_on_reals(source: Source) -> bool:
    """Tell whether all of a source computes on reals, or on integers that stand for such.

    Operators of ONNX that say what is done to the integers (`MatMulInteger`) are imported as that.
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
