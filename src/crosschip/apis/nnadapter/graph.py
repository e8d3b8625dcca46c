"""The model that a program builds: operands and operations."""

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
        inputs: the operands that are the model's inputs.
        outputs: the operands that are the model's outputs.
        draft: the translator that infers operand types while the model is being built.
        finished: the result; `None` before the model is finished.
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
        for elements in (self.operands, self.operations, self.inputs, self.outputs):
            elements.clear()
        self.draft = self.finished = None


class NNAdapterOperand(Handle):
    """An operand of a model.

    Attributes:
        model: the model.
        index: the index among the model's operands.
        declared: the type as it was added.
        type: the type with what has been inferred, and the lifetime.
        value: a constant's elements, in the stored layout.
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
        index: the index among the model's operations.
        code: the operator.
        inputs: the inputs; `None` for an omitted one.
        outputs: the outputs.
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
    """The result of building a model.

    Attributes:
        model: the model to compile.
        ranges: the minimum and maximum of each dynamic dimension with listed shapes.
        profiles: the values of the dynamic dimensions in each combination of listed shapes.
    """

    model: Model
    ranges: Mapping[str, tuple[int, int]]
    profiles: Sequence[Mapping[str, int]]
