"""A device's answers to the question which operations of a model it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.ir import Operation


class Rule(Enum):
    """The sort of rule that an operation breaks; the value is its name in JSON."""

    OPERATOR = "operator"
    """The device does not have the operator."""
    ELEMENT_TYPE = "element_type"
    """It does not compute in the element type."""
    QUANTIZATION = "quantization"
    """It does not have this quantized form of the operator."""
    COMPUTED = "computed"
    """It needs at compile time what the model computes when it runs."""
    SHAPE = "shape"
    """It does not do this rank or size, or needs a size that is open."""
    VALUE = "value"
    """It does not do this value of a parameter, or this combination of values."""
    RANGE = "range"
    """It computes in fewer bits than values need that are not known to be near enough to 0."""
    FUSION = "fusion"
    """It does not apply this activation to the result."""
    OPTION = "option"
    """It cannot compile as the options ask."""
    CAPACITY = "capacity"
    """Its memory or another limit of the whole does not do."""
    GROUP = "group"
    """It runs the operation only together with others that it did not get."""
    DEFINITION = "definition"
    """The package that brings the operator says that the device does not do this."""
    FAILURE = "failure"
    """It failed to answer, or to compile what it had said yes to."""
    CALLER = "caller"
    """The caller wants the operation elsewhere."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The rule of a device that an operation breaks.

    Attributes:
        slot: the slot at fault, or `output`; empty if it is the operation as a whole.
        detail: the rest of the sentence, as in `2 on a depthwise filter`.
        rule: the sort of rule.
    """

    slot: str
    detail: str
    rule: Rule = Rule.VALUE


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of an operation, as far as a device can tell without compiling.

    Attributes:
        seconds: the time of one run; `None` if unknown.
        bytes: the memory that the operation's constants and results take; `None` if unknown.
    """

    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Support:
    """Yes, or no and why, about one operation; true where it is yes.

    Attributes:
        supported: whether the device runs the operation.
        operator: the operator's name, where the answer is no.
        slot: the slot at fault; empty if it is the operation as a whole.
        rule: the sort of rule that is broken; `None` where the answer is yes.
        detail: the rest of the sentence; anything that it adds to a yes.
        estimate: the cost, if the answer is yes and the device can tell.
        bits: how many bits, besides the sign, the integers may have that it reads and makes, for
            the device to compute them right; `None` if as many as their types.
        dialect: a word for how the device has to read the operation; those with another word are
            compiled apart from it.
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
        """The device does not run the operation."""
        return cls(False, operation.type, slot, rule, detail)

    @property
    def reason(self) -> str:
        """The sentence: `CONV_2D.dilations: 2 on a depthwise filter`; what it adds to a yes."""
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

    A pattern that it fuses, what must fit its memory, an operation whose size depends on data and
    the only reader that can do with it: all of them go to the device in one segment, or none does.

    Attributes:
        operations: the indices of the operations in the model that was asked about.
        why: the reason, for people.
    """

    operations: Sequence[int]
    why: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A device's answer about a whole model.

    Attributes:
        answers: for each operation of the model, in order, whether the device runs it.
        groups: operations answered with yes that go together or not at all; disjoint.
    """

    answers: Sequence[Support]
    groups: Sequence[Group] = field(default=())
