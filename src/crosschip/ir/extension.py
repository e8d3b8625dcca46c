"""Operations of a framework that standard operators cannot express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from crosschip.ir.frozen import set_field
from crosschip.ir.model import Operand, Operation
from crosschip.ir.types import TensorType


class Extension(Operation):
    """Operation that runs only on devices that support the framework's operators.

    Attributes:
        type: the framework and its operator, such as `onnx.Loop`.
        payload: the operation as the framework's file encodes it, for the importer and for devices
            that run the framework's operators.
        declared: the types of the outputs, as far as the importer knows them.
        reason: why standard operators cannot express the operation.
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
        """Return the name of the operator's framework."""
        return self.type.partition(".")[0]

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        for index, operand in enumerate(self.inputs):
            if operand is not None:
                yield f"input{index}", operand

    def infer(self) -> tuple[TensorType, ...]:
        return self.declared

    def with_inputs(
        self, inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...] | None = None
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
