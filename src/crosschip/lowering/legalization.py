"""Legalization: a model becomes one of operations that a target computes, one to one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field

from crosschip.hal.capabilities import Capabilities, Sizing
from crosschip.hal.device import CompileError
from crosschip.hal.options import Options
from crosschip.hal.support import YES, Offer, Rule, Support
from crosschip.ir import Model, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.capability_check import Screen
from crosschip.lowering.decomposition import Decompose
from crosschip.passes.base import Pass, run

_MOST_REASONS = 8
"""The most reasons that an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a device computes, as data, and the passes that adapt models to it.

    Attributes:
        name: the device's; messages begin with it.
        operators: the names of the operators that it computes.
        capabilities: its element types, ranks, open sizes, layouts and precisions.
        supports: the answer about an operation that the data allows, where there are more rules.
        passes: what is done to a model of supported operations before they are emitted one to one,
            in order.
    """

    name: str
    operators: Collection[str]
    capabilities: Capabilities = field(default_factory=Capabilities)
    supports: Callable[[Operation], Support] = lambda _: YES
    passes: tuple[Pass, ...] = ()

    def query(self, model: Model) -> Offer:
        """The answers about the operations of a model: the legality oracle, as `Device.query`."""
        screen = Screen(self.capabilities, Options())
        return Offer([self._answer(operation, screen) for operation in model.operations])

    def _answer(self, operation: Operation, screen: Screen) -> Support:
        if operation.type not in self.operators:
            return Support.no(operation, "", "is not supported", Rule.OPERATOR)
        if self.capabilities.sizing is Sizing.FIXED:
            for output in operation.outputs:
                if output.type.static_shape is None:
                    return Support.no(operation, "output", "its sizes must be known", Rule.SHAPE)
        declined = screen(operation)
        return self.supports(operation) if declined is None else declined


def legalize(model: Model, target: Target) -> Model:
    """Rewrite a model into operations that a target computes.

    Operations that it does not support are decomposed first; then its passes run.

    Raises:
        CompileError: some operations remain that the target does not support; the message has the
            reasons, and `operations` the names.
    """
    legal = run(model, (Decompose(target.query), *target.passes))
    answers = target.query(legal).answers
    illegal = [o for o, answer in zip(legal.operations, answers, strict=True) if not answer]
    if illegal:
        reasons = list(dict.fromkeys(answer.reason for answer in answers if not answer))
        more = len(reasons) - _MOST_REASONS
        text = "; ".join(reasons[:_MOST_REASONS]) + (f"; and {more} more" if more > 0 else "")
        raise CompileError(f"{target.name}: {text}", illegal)
    return legal
