"""A model of static shapes as a function that JAX traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.graph import Emission, Graph, Value
from crosschip.devices.kits.stablehlo.narrow import entering, inner
from crosschip.devices.kits.stablehlo.weights import Weight, weights_of
from crosschip.hal import Precision
from crosschip.ir import Model, Operand


class Function:
    """A model as a function of its weights and inputs.

    It returns the model's outputs; then the actual size of each padded dimension; then, if the
    model has rules, one boolean tensor with an element per rule.

    Args:
        model: the model, of static shapes; all of its operations have converters. If the sizes of
            outputs depend on data, it is a single operation.
        emission: the device's converters and choices.
        precision: the arithmetic of products of float32 tensors.

    Attributes:
        weights: the constants that are arguments.
        rules: the error messages of the rules, once it was traced.
    """

    def __init__(self, model: Model, emission: Emission, precision: Precision) -> None:
        self._model = model
        self._emission = emission
        self._precision = precision
        self.weights: Sequence[Weight] = weights_of(model)
        self.rules: Sequence[str] = ()

    def __call__(self, constants: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
        """Compute the model while JAX traces it."""
        model = self._model
        entered = dict(zip(model.inputs.values(), map(entering, inputs), strict=True))
        filters: dict[Operand, Value] = {}
        for weight, constant in zip(self.weights, constants, strict=True):
            (filters if weight.is_filter else entered)[weight.operand] = entering(constant)
        graph = Graph(entered, filters, self._emission, self._precision)
        for operation in model.operations:
            graph.add(operation)
        types = [operand.type.element_type.dtype for operand in model.outputs.values()]
        if not self._emission.returns_narrow:
            types = list(map(inner, types))
        values = [graph[operand] for operand in model.outputs.values()]
        outputs = [value.astype(dtype) for value, dtype in zip(values, types, strict=True)]
        self.rules = tuple(graph.rules)
        flags = [jnp.stack(graph.flags)] if graph.flags else []
        return [*outputs, *graph.counts, *flags]

    def arguments(self, sharding: Any = None) -> tuple[list[Any], list[Any]]:
        """Return the types of weights and inputs, on the chips of a sharding."""

        def struct(operand: Operand, shape: tuple[int, ...] | None) -> jax.ShapeDtypeStruct:
            dtype = operand.type.element_type.dtype
            return jax.ShapeDtypeStruct(shape or (), dtype, sharding=sharding)

        return (
            [struct(weight.operand, weight.shape) for weight in self.weights],
            [struct(operand, operand.type.static_shape) for operand in self._model.inputs.values()],
        )
