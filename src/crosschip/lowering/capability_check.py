"""Refusals that follow from a device's capabilities alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crosschip.hal.capabilities import Capabilities, Sizing
from crosschip.hal.options import Options
from crosschip.hal.support import Rule, Support
from crosschip.ir import Dim, ElementType, Operand, Operation
from crosschip.ir.types import ALL_TYPES
from crosschip.ops import Operator


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
            words = " or ".join(sorted(precision.value for precision in precisions)) or "integers"
            self._precision = f"computes in {words}, not in {options.precision.value}"
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
