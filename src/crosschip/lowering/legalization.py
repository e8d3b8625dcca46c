"""Legalization of a model for a target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field

from crosschip.hal.capabilities import Capabilities, Sizing
from crosschip.hal.device import CompileError
from crosschip.hal.options import Options
from crosschip.hal.support import YES, Offer, Rule, Support
from crosschip.ir import Dim, ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import ALL_TYPES
from crosschip.lowering.decomposition import Decompose
from crosschip.ops import Operator
from crosschip.passes.base import Pass, run

_MAX_REASONS = 8
"""The maximum number of reasons that an error lists."""


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


class Screen:
    """Refuses operations that a device's capabilities rule out, whatever the device answers.

    Attributes:
        needed: whether any operation can be refused at all.
    """

    def __init__(self, capabilities: Capabilities, options: Options) -> None:
        self._capabilities = capabilities
        precisions = capabilities.precisions
        self._option = ""
        if options.threads is not None and not capabilities.threads:
            self._option = "the number of threads cannot be set on this device"
        self._precision = ""
        if options.precision not in precisions and not capabilities.pairs:
            names = " or ".join(sorted(precision.value for precision in precisions)) or "integers"
            self._precision = f"computes in {names}, not in {options.precision.value}"
        self._sizes = capabilities.sizing is Sizing.BOUNDED or capabilities.max_rank is not None
        self._missing_types = ALL_TYPES - capabilities.types - capabilities.narrowed.keys()
        self.needed = bool(self._option or self._precision or self._sizes or self._missing_types)

    def __call__(self, operation: Operation) -> Support | None:
        """Return a refusal, or `None` if the capabilities allow the operation."""
        if self._option:
            return Support.no(operation, "", self._option, Rule.OPTION)
        for slot, operand in _tensors(operation):
            type_ = operand.type
            if self._precision and type_.element_type is ElementType.FLOAT32:
                return Support.no(operation, slot, self._precision, Rule.OPTION)
            if type_.element_type in self._missing_types:
                detail = f"{type_.element_type} is not supported"
                return Support.no(operation, slot, detail, Rule.ELEMENT_TYPE)
            mismatch = self._mismatch(type_.shape) if self._sizes else ""
            if mismatch:
                return Support.no(operation, slot, mismatch, Rule.SHAPE)
        return None

    def _mismatch(self, shape: Sequence[Dim] | None) -> str:
        capabilities = self._capabilities
        if shape is None:
            return "its number of axes must be known"
        if capabilities.max_rank is not None and len(shape) > capabilities.max_rank:
            return f"has {len(shape)} axes, more than {capabilities.max_rank}"
        return ""


def _tensors(operation: Operation) -> Iterator[tuple[str, Operand]]:
    """Yield the operands and outputs of an operation with their slots, without parameters."""
    if isinstance(operation, Operator):
        yield from ((slot.name, o) for slot, o in operation.filled() if not slot.parameter)
    else:
        yield from operation.named_inputs()
    yield from (("output", output) for output in operation.outputs)
