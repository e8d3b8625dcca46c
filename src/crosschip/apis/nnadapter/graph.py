"""The model that a program builds, of operands and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLifetimeCode as Lifetime
from crosschip.apis.nnadapter.enumerations import NNAdapterOperationCode
from crosschip.apis.nnadapter.results import Handle
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Array, Model

if TYPE_CHECKING:
    from crosschip.apis.nnadapter.building import Translator


class NNAdapterModel(Handle):
    """A model: its operands and operations in the order in which they were added.

    Attributes:
        operands: the operands.
        operations: the operations.
        inputs: the operands that are its inputs.
        outputs: those that are its outputs.
        draft: what tells the types of operands while it is built.
        finished: what it has become; `None` before it is finished.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operands: list[NNAdapterOperand] = []
        self.operations: list[NNAdapterOperation] = []
        self.inputs: list[NNAdapterOperand] = []
        self.outputs: list[NNAdapterOperand] = []
        self.draft: Translator | None = None
        self.finished: Finished | None = None

    def destroy(self) -> None:
        super().destroy()
        for part in (*self.operands, *self.operations):
            part.destroy()
        for held in (self.operands, self.operations, self.inputs, self.outputs):
            held.clear()
        self.draft = self.finished = None


class NNAdapterOperand(Handle):
    """An operand of a model.

    Attributes:
        model: the model.
        index: its place among the model's operands.
        declared: its type as it was added.
        type: its type as far as it is known, with its lifetime.
        value: the elements of a constant, in the order in which they are stored.
    """

    def __init__(self, model: NNAdapterModel, type_: NNAdapterOperandType) -> None:
        super().__init__()
        self.model = model
        self.index = len(model.operands)
        self.declared = type_.copy()
        self.declared.lifetime = Lifetime.NNADAPTER_TEMPORARY_VARIABLE
        self.type = self.declared.copy()
        self.value: Array | None = None

    @property
    def name(self) -> str:
        """The operand's name in messages."""
        return f"operand_{self.index}"


class NNAdapterOperation(Handle):
    """An operation of a model.

    Attributes:
        index: its place among the model's operations.
        code: its operator.
        inputs: the operands that it reads; `None` where one is left out.
        outputs: the operands that it makes.
    """

    def __init__(
        self,
        index: int,
        code: NNAdapterOperationCode,
        inputs: Sequence[NNAdapterOperand | None],
        outputs: Sequence[NNAdapterOperand],
    ) -> None:
        super().__init__()
        self.index = index
        self.code = code
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)

    @property
    def name(self) -> str:
        """The operation's name in messages."""
        return f"{self.code.name.removeprefix('NNADAPTER_').lower()}_{self.index}"


@dataclass(frozen=True, slots=True)
class Finished:
    """A model that has been built.

    Attributes:
        model: what is compiled.
        ranges: the least and the greatest value of each open size that there are shapes for.
        profiles: the values of these sizes in each of the shapes.
    """

    model: Model
    ranges: Mapping[str, tuple[int, int]]
    profiles: Sequence[Mapping[str, int]]
