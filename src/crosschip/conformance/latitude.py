"""Latitude of definitions: elements of which a device may make what it likes.

For each operator whose documentation says of something that it is not specified, the elements to
which that applies, given what fills the slots. They are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Array, ElementType, Model, TensorType
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.indexing import Scatter

Arrays = Mapping[str, Sequence[Array]]
"""The filling of each slot: one array, or several if it takes many."""

Rule = Callable[[Operator, Arrays], bool | Array]
"""The elements of the outputs that are open: all, none, or those of a mask."""


def open_elements(model: Model, inputs: Sequence[Array], expected: Sequence[Array]) -> bool | Array:
    """The elements that are open of the outputs of a model of one operation.

    Args:
        model: the model.
        inputs: its inputs.
        expected: what the reference makes of them.
    """
    (operation,) = model.operations
    if operation.type in _OPEN_NAN:
        first = expected[0].astype(np.float64)
        return np.isnan(first) | (np.isneginf(first) if operation.type in _OPEN_LEAST else False)
    rule = _RULES.get(operation.type)
    if rule is None or not isinstance(operation, Operator):
        return False
    known = dict(zip(model.inputs.values(), inputs, strict=True))
    arrays: dict[str, list[Array]] = {}
    for slot, operand in operation.filled():
        array = known[operand] if operand.value is None else operand.value
        arrays.setdefault(slot.name, []).append(array)
    with np.errstate(all="ignore"):
        return rule(operation, arrays)


def counted_in(operator: str, output: TensorType) -> TensorType:
    """An output's type as to its precision: float32 where no more is asked of the weights."""
    if operator in _WEIGHED_IN_FLOAT32 and output.element_type is ElementType.FLOAT64:
        return replace(output, element_type=ElementType.FLOAT32)
    return output


_WEIGHED_IN_FLOAT32 = frozenset({"RESIZE_LINEAR", "RESIZE_CUBIC", "ROI_ALIGN"})


def _cast(operation: Operator, arrays: Arrays) -> bool | Array:
    """Reals beyond an integer type, and NaN in float4."""
    (input,), to = arrays["input"], ElementType.from_code(int(arrays["dtype"][0].item()))
    if input.dtype.kind in "iub" or ElementType.of(input.dtype) not in FLOATS | _NARROW:
        return False
    wide = input.astype(np.float64)
    if to is ElementType.FLOAT4E2M1:
        return np.isnan(wide)
    if "int" not in to.value:
        return False
    least, greatest = limits(to)
    whole = np.trunc(wide)
    return ~((whole >= least) & (whole <= greatest))


_NARROW = frozenset(t for t in ElementType if t.value.startswith("float") and t not in FLOATS)


def _not_finite(*slots: str) -> Rule:
    """All, if an element of one of these slots is infinite or NaN."""

    def rule(operation: Operator, arrays: Arrays) -> bool:
        return any(
            not np.isfinite(array.astype(np.float64)).all()
            for slot in slots
            for array in arrays.get(slot, ())
            if array.dtype.kind not in "iub"
        )

    return rule


def _nan(slot: str) -> Rule:
    """All, if an element of the slot is NaN."""
    return lambda operation, arrays: bool(np.isnan(arrays[slot][0].astype(np.float64)).any())


def _extremes_of_nan(operation: Operator, arrays: Arrays) -> bool:
    """All, if NaN meets the greatest or the least of several."""
    if not arrays.get("reduction"):
        return False
    name = Scatter(int(arrays["reduction"][0].item())).name
    both = (*arrays["input"], *arrays["updates"])
    return name in ("MAX", "MIN") and any(np.isnan(a.astype(np.float64)).any() for a in both)


def _quantize(operation: Operator, arrays: Arrays) -> bool | Array:
    """NaN in an integer type."""
    if "int" not in operation.outputs[0].type.element_type.value:
        return False
    return np.asarray(np.isnan(arrays["input"][0].astype(np.float64)))


_OPEN_LEAST = frozenset({"MAX_POOL_2D", "ADAPTIVE_MAX_POOL_2D"})
"""Operators whose minus infinity may be the least finite number."""

_OPEN_NAN = _OPEN_LEAST | {"SOFTMAX", "LOG_SOFTMAX"}
"""Operators that may lose a NaN."""

_RULES: dict[str, Rule] = {
    "QUANTIZE": _quantize,
    "CAST": _cast,
    "CONV_2D": _not_finite("filter"),
    "CONV_2D_TRANSPOSE": _not_finite("filter"),
    "DEFORMABLE_CONV_2D": _not_finite("input", "offset", "mask", "filter"),
    "GRID_SAMPLE": _not_finite("input", "grid"),
    "RESIZE_LINEAR": _not_finite("input"),
    "RESIZE_CUBIC": _not_finite("input"),
    "ROI_ALIGN": _not_finite("input", "rois"),
    "DET": _not_finite("input"),
    "LRN": _not_finite("input"),
    "BATCH_NORMALIZATION": _not_finite("scale", "bias", "mean", "variance"),
    "LAYER_NORMALIZATION": _not_finite("scale", "bias"),
    "INSTANCE_NORMALIZATION": _not_finite("scale", "bias"),
    "GROUP_NORMALIZATION": _not_finite("scale", "bias"),
    "RNN": _not_finite("input", "weight", "recurrence_weight", "bias", "initial_hidden"),
    "GRU": _not_finite("input", "weight", "recurrence_weight", "bias", "initial_hidden"),
    "LSTM": _not_finite(
        *("input", "weight", "recurrence_weight", "bias", "initial_hidden", "initial_cell"),
        "peephole",
    ),
    "SCATTER_ND": _extremes_of_nan,
    "SCATTER_ELEMENTS": _extremes_of_nan,
    "UNIQUE": _nan("input"),
}
