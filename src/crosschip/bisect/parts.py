"""Parts of a model as models that read recorded values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosschip.ir import Array, Model, Operand, Operation
from crosschip.ir.text import is_inline
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator

Values = Mapping[Operand, Any]
"""The value of each operand of a model in one run."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some operations of a model, as a model.

    Attributes:
        model: the operations, whose inputs and outputs have plain names.
        reads: the operand of the whole model for each input, by the input's name.
        makes: the operand of the whole model for each output, by the output's name.
    """

    model: Model
    reads: Mapping[str, Operand]
    makes: Mapping[str, Operand]

    @property
    def depth(self) -> int:
        """The number of operations."""
        return len(self.model.operations)

    def inputs(self, values: Values) -> dict[str, Any]:
        """Return the inputs, given the values of the whole model's operands."""
        return {name: values[operand] for name, operand in self.reads.items()}

    def by_operand(self, outputs: Mapping[str, Any]) -> dict[Operand, Any]:
        """Return the outputs of a run by operands of the whole model."""
        return {operand: outputs[name] for name, operand in self.makes.items()}


class Whole:
    """A model that parts are taken from.

    Args:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def together(self, operations: Sequence[Operation]) -> Part:
        """Return operations connected as in the model.

        The outputs are those that none of them reads, so that an engine may fuse the others.
        """
        chosen = self._in_model_order(operations)
        read = {operand for operation in chosen for operand in operation.inputs}
        ends = [o for operation in chosen for o in operation.outputs if o not in read]
        return _part(self.model.name, chosen, [o for o in ends if self._is_read(o)] or ends)

    def exposed(self) -> Part:
        """Return the whole model with all computed operands as outputs."""
        results = [output for operation in self.model.operations for output in operation.outputs]
        return _part(self.model.name, self.model.operations, results)

    def independent(self, operations: Sequence[Operation]) -> Part:
        """Return operations in one model, disconnected from each other."""
        disconnected, reads = [], {}
        for operation in self._in_model_order(operations):
            fresh: dict[Operand, Operand] = {}
            for operand in operation.inputs:
                if operand is not None and not operand.is_constant and operand not in fresh:
                    fresh[operand] = Operand(operand.name, operand.type)
            reads.update({new: old for old, new in fresh.items()})
            inputs = (None if o is None else fresh.get(o, o) for o in operation.inputs)
            disconnected.append(operation.with_inputs(tuple(inputs)))
        makes = [o for operation in disconnected for o in operation.outputs if self._is_read(o)]
        named = {f"input{index}": operand for index, operand in enumerate(reads)}
        outputs = {f"output{index}": operand for index, operand in enumerate(makes)}
        model = Model(self.model.name, named, disconnected, outputs)
        return Part(model, {name: reads[operand] for name, operand in named.items()}, outputs)

    def pinned(self, operations: Iterable[Operation], device: str) -> tuple[Model, dict[str, str]]:
        """Return the model with unique names of operations, and pins of these to a device."""
        names = {operation: f"culprit.{i}" for i, operation in enumerate(operations)}
        renamed = [o.with_name(names[o]) if o in names else o for o in self.model.operations]
        model = Model(self.model.name, self.model.inputs, renamed, self.model.outputs)
        return model, dict.fromkeys(names.values(), device)

    def _in_model_order(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        chosen = set(operations)
        return [operation for operation in self.model.operations if operation in chosen]

    def _is_read(self, operand: Operand) -> bool:
        return self.model.uses.get(operand, 0) > 0


def perturb_weights(part: Part, step: float, seed: int) -> Model:
    """Return a part with each weight changed by a relative step, up or down at random."""
    generator = np.random.default_rng(seed)
    perturbed: dict[Operand, Operand] = {}
    operations = []
    for operation in part.model.operations:
        for operand in _weights(operation):
            if operand not in perturbed:
                value = perturb(np.asarray(operand.value), step, generator)
                perturbed[operand] = Operand(operand.name, operand.type, value)
        inputs = tuple(None if o is None else perturbed.get(o, o) for o in operation.inputs)
        changed = inputs != operation.inputs
        operations.append(operation.with_inputs(inputs) if changed else operation)
    return Model(part.model.name, part.model.inputs, operations, part.model.outputs)


def perturb(array: Any, step: float, generator: np.random.Generator) -> Any:
    """Return floats changed by a relative step each, up or down at random; others unchanged."""
    if not isinstance(array, np.ndarray) or array.dtype not in _REALS:
        return array
    signs = generator.integers(0, 2, array.shape, np.int8) * 2 - 1
    with np.errstate(over="ignore", invalid="ignore"):
        wide = array if array.dtype == np.float64 else array.astype(np.float32)
        perturbed: Array = (wide * (1 + step * signs).astype(wide.dtype)).astype(array.dtype)
    return np.where(np.isfinite(perturbed.astype(np.float64)), perturbed, array)


_REALS = frozenset(type_.dtype for type_ in FLOATS)


def _weights(operation: Operation) -> Iterator[Operand]:
    """Return the constant float tensors that an operation reads, without parameters."""
    if isinstance(operation, Operator):
        for slot, operand in operation.filled():
            real = operand.type.element_type in FLOATS
            if operand.is_constant and not slot.parameter and real and not is_inline(operand):
                yield operand


def _part(name: str, operations: Sequence[Operation], outputs: Sequence[Operand]) -> Part:
    computed = {output for operation in operations for output in operation.outputs}
    read = dict.fromkeys(
        operand
        for operation in operations
        for operand in operation.inputs
        if operand is not None and not operand.is_constant and operand not in computed
    )
    inputs = {f"input{index}": operand for index, operand in enumerate(read)}
    named = {f"output{index}": operand for index, operand in enumerate(dict.fromkeys(outputs))}
    return Part(Model(name, inputs, operations, named), inputs, named)
