"""OpenVINO with one rule of ours less, and the cases of the kit that show what it does then.

`tests.conformance.unguarded:Unguarded` is a device like any other, without those rules in whose
place the process may end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from openvino import opset15 as ov

from crosschip.devices.kits.size_checks import Sizes
from crosschip.devices.openvino import OpenVinoDevice, compiling, program
from crosschip.devices.openvino.converters import (
    activation,
    recurrent,
    searching,
)
from crosschip.devices.openvino.converters.table import converters
from crosschip.devices.openvino.graph import TYPES, Graph
from crosschip.devices.openvino.lowering import convolution, nan
from crosschip.devices.openvino.request import Request
from crosschip.devices.openvino.target import TARGET
from crosschip.ops.standard.creation import Range
from crosschip.ops.standard.layout import Expand, Reshape

Remove = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Rule:
    """A rule of the device.

    Attributes:
        remove: takes it away.
        cases: the cases of the kit that fail without it.
        ends_the_process: whether one of them may crash.
    """

    remove: Remove
    cases: tuple[str, ...]
    ends_the_process: bool = False


def without(owner: Any, name: str, instead: Callable[..., Any]) -> Remove:
    """Has a function of the device do something else."""
    return lambda patch: patch.setattr(owner, name, instead)


def without_pass(function: Callable[..., Any]) -> Remove:
    """Leaves out the pass of the target that rewrites operations by a function."""
    left = tuple(p for p in TARGET.passes if getattr(p, "function", None) is not function)
    return lambda patch: patch.setattr(compiling, "TARGET", replace(TARGET, passes=left))


def as_it_comes(operator: type, convert: Callable[[Graph, Any], Any]) -> Remove:
    """Hands an operator on to OpenVINO as it comes."""

    def remove(patch: pytest.MonkeyPatch) -> None:
        entry = converters._table[operator]
        patch.setitem(converters._table, operator, replace(entry, convert=convert))

    return remove


class Swallowing(Request):
    """Never waits, so that with one thread it does not hear of what goes wrong."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._waits = self._waits_always = False


def nothing(*arguments: Any) -> None:
    """Checks nothing."""


def _reshape(g: Graph, op: Reshape) -> Any:
    return ov.reshape(g[op.input], g.indices(op.operand("shape")), True)


def _expand(g: Graph, op: Expand) -> Any:
    return ov.broadcast(g[op.input], g.indices(op.operand("shape")), broadcast_spec="bidirectional")


def _range(g: Graph, op: Range) -> Any:
    ends = (g.reshaped(operand, []) for operand in (op.start, op.end, op.step))
    return ov.range(*ends, TYPES[op.outputs[0].type.element_type].to_string())


RULES: Mapping[str, Rule] = {
    "one column of one channel": Rule(
        without(convolution, "reads_lone_column", lambda op: False), ("CONV_2D/9/plain",)
    ),
    "networks with the steps first": Rule(
        without(recurrent, "_steps_first", lambda hidden: ov.transpose(hidden, [2, 1, 0, 3])),
        ("GRU/1/others-constant,loaded", "LSTM/0/others-constant,loaded"),
    ),
    "NaN in what is bounded": Rule(
        without(activation, "fuses", lambda value: True), ("RELU/0/input-nan", "CLIP/0/input-nan")
    ),
    "NaN among what is compared": Rule(
        without_pass(nan.nan_and_infinity_of_reduction), ("REDUCE_MAX/0/input-nan",)
    ),
    "NaN among what is ordered": Rule(
        without(searching, "_key", lambda g, operand, greatest: g[operand]),
        ("TOP_K/0/input-nan",),
    ),
    "sizes": Rule(
        without(Sizes, "check_shapes", nothing),
        (
            *("BATCH_NORMALIZATION/0/resized", "PRELU/0/resized"),
            *("MAX_POOL_2D/0/resized", "AVERAGE_POOL_2D/0/resized"),
        ),
    ),
    "indices in range": Rule(
        without(Graph, "within", lambda g, op, indices, *rest, **named: g[indices]),
        ("GATHER/0/indices-far", "GATHER_ND/0/indices-far"),
        ends_the_process=True,
    ),
    "something to search": Rule(
        without(Graph, "some", nothing), ("ARG_MAX/0/resized",), ends_the_process=True
    ),
    "shapes": Rule(
        as_it_comes(Reshape, _reshape),
        ("DEVICE/models/product-of-vectors",),
        ends_the_process=True,
    ),
    "what to expand to": Rule(as_it_comes(Expand, _expand), ("DEVICE/device/one-thread",)),
    "steps": Rule(
        as_it_comes(Range, _range),
        ("RANGE/2/step-zero", "RANGE/2/start-far"),
        ends_the_process=True,
    ),
    "errors of a single thread": Rule(
        without(program, "Request", Swallowing), ("DEVICE/device/one-thread",), True
    ),
}
"""The rules by what they are about."""


class Unguarded(OpenVinoDevice):
    """OpenVINO without the rules in whose place the process may end."""

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        patch = pytest.MonkeyPatch()
        for rule in RULES.values():
            if rule.ends_the_process:
                rule.remove(patch)
