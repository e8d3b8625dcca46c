"""Operations outside the standard set, kept as the framework wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from crosschip.ir.frozen import set_field
from crosschip.ir.model import Operand, Operation
from crosschip.ir.types import TensorType


class Extension(Operation):
    """An operation that only a device runs which knows the framework's own operators.

    Attributes:
        type: the framework and its operator, as in `onnx.Loop`.
        payload: what the framework's file says about the operation; means something only to the
            importer that kept it and to devices that run operations of that framework.
        declared: the types of the outputs, as far as the importer knows them.
        reason: why no standard operators express it.
    """

    __slots__ = ("declared", "payload", "reason", "type")

    # Standard operators have a class each; all extensions share this one.
    type: str  # type: ignore[misc]
    payload: bytes
    declared: tuple[TensorType, ...]
    reason: str

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        *,
        type: str,
        payload: bytes,
        declared: tuple[TensorType, ...],
        reason: str = "",
    ) -> None:
        super().__init__(name, inputs, outputs)
        set_field(self, "type", type)
        set_field(self, "payload", payload)
        set_field(self, "declared", declared)
        set_field(self, "reason", reason)

    @property
    def framework(self) -> str:
        """The framework whose operator it is."""
        return self.type.partition(".")[0]

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        for index, operand in enumerate(self.inputs):
            if operand is not None:
                yield f"input{index}", operand

    def infer(self) -> tuple[TensorType, ...]:
        return self.declared

    def with_inputs(
        self,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] | None = None,
    ) -> Self:
        return type(self)(
            self.name,
            inputs,
            self.outputs if outputs is None else outputs,
            type=self.type,
            payload=self.payload,
            declared=self.declared,
            reason=self.reason,
        ).standing_for(self)
