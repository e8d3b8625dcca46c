"""Legalization of a model for a target."""

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

_MAX_REASONS = 8
"""How many reasons an error lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The operations that a device supports, as data, and the passes that adapt models to it.

    Attributes:
        name: the device's name, for messages.
        operators: the names of the supported operators.
        capabilities: element types, ranks, dynamic shapes, layouts and precisions.
        supports: a further check of operations that the data allows.
        passes: rewrites of a model of supported operations, in order, before it is emitted one to
            one.
    """

    name: str
    operators: Collection[str]
    capabilities: Capabilities = field(default_factory=Capabilities)
    supports: Callable[[Operation], Support] = lambda _: YES
    passes: tuple[Pass, ...] = ()

    def query(self, model: Model) -> Offer:
        """Return the answers for a model's operations, as `Device.query` does."""
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
    """Rewrite a model into operations that a target supports.

    Unsupported operations are decomposed first; then the target's passes run.

    Raises:
        CompileError: unsupported operations remain; the message has the reasons, and `operations`
            the names.
    """
    legal = run(model, (Decompose(target.query), *target.passes))
    answers = target.query(legal).answers
    illegal = [o for o, answer in zip(legal.operations, answers, strict=True) if not answer]
    if illegal:
        reasons = list(dict.fromkeys(answer.reason for answer in answers if not answer))
        more = len(reasons) - _MAX_REASONS
        text = "; ".join(reasons[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")
        raise CompileError(f"{target.name}: {text}", illegal)
    return legal
