"""Answers of a device to the query which operations of a model it supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.ir import Operation


class Rule(Enum):
    """Category of rule that an operation breaks; the value is its name in JSON."""

    OPERATOR = "operator"
    """The device does not implement the operator."""
    ELEMENT_TYPE = "element_type"
    """The device does not compute in the element type."""
    QUANTIZATION = "quantization"
    """The device does not implement this quantized form of the operator."""
    COMPUTED = "computed"
    """The device needs a constant where the model computes a value at run time."""
    SHAPE = "shape"
    """The device does not support the rank or size, or requires a static shape."""
    VALUE = "value"
    """The device does not support a parameter's value, or a combination of values."""
    RANGE = "range"
    """The device computes in fewer bits than the values may need."""
    FUSION = "fusion"
    """The device does not fuse this activation."""
    OPTION = "option"
    """The device does not support the options."""
    CAPACITY = "capacity"
    """The model exceeds the device's memory or another limit."""
    GROUP = "group"
    """The device runs the operation only together with others, which are not placed on it."""
    DEFINITION = "definition"
    """The package that defines the operator rejects the operation for the device."""
    FAILURE = "failure"
    """The device failed to answer, or to compile an operation that it had declared supported."""
    CALLER = "caller"
    """The caller excluded the device for the operation."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rule of a device that an operation breaks.

    Attributes:
        slot: the slot that breaks it, or `output`; empty for the operation as a whole.
        detail: the rest of the sentence, such as `2 on a depthwise filter`.
        rule: the category of rule.
    """

    slot: str
    detail: str
    rule: Rule = Rule.VALUE


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of an operation as a device estimates it without compiling.

    Attributes:
        seconds: the time of one run; `None` if unknown.
        bytes: the memory of the operation's constants and results; `None` if unknown.
    """

    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """A device's answer about an operation: yes (then it is true), or no with the reason.

    Attributes:
        supported: whether the device runs the operation.
        operator: the operator's name, if it is unsupported.
        slot: the slot that breaks a rule; empty for the operation as a whole.
        rule: the category of the broken rule; `None` if supported.
        detail: the rest of the sentence, or a remark on a supported operation.
        estimate: the cost, if the operation is supported and the cost is known.
        bits: how many bits without the sign the integers that it reads and outputs may have for
            correct results; `None` for all bits of their types.
        dialect: a word for how the device interprets the operation; operations with different words
            are compiled separately.
    """

    supported: bool
    operator: str = ""
    slot: str = ""
    rule: Rule | None = None
    detail: str = ""
    estimate: Estimate | None = None
    bits: int | None = None
    dialect: str = ""

    @classmethod
    def no(cls, operation: Operation, slot: str, detail: str, rule: Rule = Rule.VALUE) -> Support:
        """Return the answer that the device does not run the operation."""
        return cls(False, operation.type, slot, rule, detail)

    @property
    def reason(self) -> str:
        """Return the sentence, such as `CONV_2D.dilations: 2 on a depthwise filter`."""
        if self.supported or not self.detail:
            return self.detail
        where = f"{self.operator}.{self.slot}" if self.slot else self.operator
        return f"{where}: {self.detail}"

    def __bool__(self) -> bool:
        return self.supported


YES = Support(True)


@dataclass(frozen=True, slots=True)
class Group:
    """Operations that a device runs together or not at all.

    Examples are a pattern that it fuses, and an operation with a data-dependent output shape
    together with its only reader. All of them are placed in one segment of the device, or none is.

    Attributes:
        operations: the indices of the operations in the queried model.
        why: the reason, for messages.
    """

    operations: Sequence[int]
    why: str


@dataclass(frozen=True, slots=True)
class Offer:
    """Answer of a device about a whole model.

    Attributes:
        answers: for each operation of the model, in order, whether the device supports it.
        groups: disjoint groups of supported operations that must be placed together.
    """

    answers: Sequence[Support]
    groups: Sequence[Group] = field(default=())
