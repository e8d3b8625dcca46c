"""Operators of TensorFlow Lite as operations of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from crosschip.ir import Builder, Model, Operand, Operation, TensorType
from crosschip.ir.frozen import set_field


class Native(Operation):
    """Operator of TensorFlow Lite.

    Attributes:
        code: the operator's name in the schema, such as `CONV_2D`; for a custom operator its own.
        options: the fields of the operator's options table, by the schema's names.
        declared: the types of the outputs.
        bodies: the models that an operator of control flow runs, as options by their names refer to
            them.
    """

    __slots__ = ("_bodies", "code", "declared", "options", "type")

    # Standard operators have a class each; all operators of TensorFlow Lite share this one.
    type: str  # type: ignore[misc]
    code: str
    options: Mapping[str, Any]
    declared: tuple[TensorType, ...]
    _bodies: tuple[Model, ...]

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        *,
        code: str,
        options: Mapping[str, Any],
        declared: tuple[TensorType, ...],
        bodies: tuple[Model, ...] = (),
    ) -> None:
        super().__init__(name, inputs, outputs)
        set_field(self, "type", f"tflite.{code}")
        set_field(self, "code", code)
        set_field(self, "options", dict(options))
        set_field(self, "declared", declared)
        set_field(self, "_bodies", bodies)

    @property
    def bodies(self) -> tuple[Model, ...]:
        return self._bodies

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
            code=self.code,
            options=self.options,
            declared=self.declared,
            bodies=self.bodies,
        ).standing_for(self)

    def with_options(self, **options: Any) -> Self:
        """Return the same operator with some options changed."""
        return type(self)(
            self.name,
            self.inputs,
            self.outputs,
            code=self.code,
            options={**self.options, **options},
            declared=self.declared,
            bodies=self.bodies,
        ).standing_for(self)

    def __repr__(self) -> str:
        return f"<{self.code} {self.name}>"


class Graph(Builder):
    """Builder of the operations that replace a standard one."""

    def native(
        self, code: str, *inputs: Operand | None, type: TensorType, **options: Any
    ) -> Operand:
        """Append an operator with one output of a type, and return that output."""
        return self.natives(code, inputs, [type], **options)[0]

    def natives(
        self,
        code: str,
        inputs: Sequence[Operand | None],
        types: Sequence[TensorType],
        bodies: Sequence[Model] = (),
        **options: Any,
    ) -> tuple[Operand, ...]:
        """Append an operator with outputs of some types, and return these."""
        operation = Native(
            self.unique_name(code.lower()),
            tuple(inputs),
            code=code,
            options=options,
            declared=tuple(types),
            bodies=tuple(bodies),
        )
        return self.insert(operation)

    def add_reshape(self, operand: Operand, type: TensorType) -> Operand:
        """Append a change of the shape, to a type of known sizes."""
        shape = type.static_shape
        assert shape is not None, "the target requires it"
        sizes = self.int32(shape)
        return self.native("RESHAPE", operand, sizes, type=type, new_shape=list(shape))

    def int32(self, values: Any) -> Operand:
        """Return a constant of int32."""
        return self.constant(np.asarray(values, np.int32))
