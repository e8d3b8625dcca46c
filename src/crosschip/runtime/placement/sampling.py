"""Queries about models with dynamic sizes, to devices that compile static shapes only.

The device is queried about the model with typical sizes. In a run, segments are compiled for the
sizes of its inputs; those that the device declines or fails to compile run on another device.
"""

from __future__ import annotations

from dataclasses import replace

from crosschip.hal import YES, Group, Offer, Rule, Sizes, Support
from crosschip.ir import Model, ModelError, Operand, Operation
from crosschip.lowering.decomposition import Ask
from crosschip.lowering.static_shapes import DependsOnData, Fixing, is_data_dependent
from crosschip.runtime.shapes.typical_sizes import typical_shape, typical_sizes


class Sampling:
    """Queries a device about models and parts of them, always with the same sizes.

    Args:
        ask: queries the device about a model of static shapes.
        sizes: the ranges and profiles of dynamic sizes.
        data_dependent: whether to query about operations with data-dependent output sizes, which
            are compiled one by one.
    """

    def __init__(self, ask: Ask, sizes: Sizes, *, data_dependent: bool = False) -> None:
        self._ask = ask
        self._data_dependent = data_dependent
        self._fixing = Fixing(typical_sizes(sizes))

    def __call__(self, model: Model) -> Offer:
        """Return the offer for a model; operations that compute sizes are left to the runtime."""
        for operand in model.inputs.values():
            self._assume(operand)
        answers: list[Support] = [YES] * len(model.operations)
        sound: dict[int, Operation] = {}
        alone: list[int] = []
        for index, operation in enumerate(model.operations):
            if self._data_dependent and is_data_dependent(operation):
                alone.append(index)
            if any(map(self._is_unknown, operation.inputs)):
                sound[index] = self._fixing.resolved(operation)
                continue
            try:
                supports = self._fixing.follow(operation, alone=self._data_dependent)
            except DependsOnData:
                detail = "a size depends on data, and must be known here"
                answers[index] = Support.no(operation, "", detail, Rule.SHAPE)
            except ModelError:
                # The typical sizes do not fit the operation, but other sizes may.
                sound[index] = self._fixing.resolved(operation)
            else:
                if supports is not None:
                    sound[index] = supports
            for output in operation.outputs:
                self._assume(output)
        if not sound:
            return Offer(answers)
        offer = self._ask(self._sample(model, sound))
        indices = list(sound)
        for index, answer in zip(indices, offer.answers, strict=True):
            answers[index] = answer
        for index in alone:
            word = f"{answers[index].dialect} {model.operations[index].name}"
            answers[index] = replace(answers[index], dialect=word)
        groups = [Group([indices[i] for i in g.operations], g.why) for g in offer.groups]
        return Offer(answers, groups)

    def _assume(self, operand: Operand) -> None:
        """Give an operand of unknown sizes typical sizes, if its rank is known."""
        is_static = operand in self._fixing and not self._is_unknown(operand)
        if not is_static and operand.type.shape is not None:
            self._fixing.take(operand, typical_shape(operand.type, self._fixing.sizes))

    def _is_unknown(self, operand: Operand | None) -> bool:
        """Return whether the shape is still dynamic: its rank is unknown."""
        return operand is not None and self._fixing[operand].type.static_shape is None

    def _sample(self, model: Model, sound: dict[int, Operation]) -> Model:
        """Return the operations with known sizes, as a model."""
        operations = list(sound.values())
        written = {output for operation in operations for output in operation.outputs}
        read = dict.fromkeys(
            operand
            for operation in operations
            for operand in operation.inputs
            if operand is not None and not operand.is_constant and operand not in written
        )
        read_outside = [self._fixing[operand] for operand in model.outputs.values()]
        for index, operation in enumerate(model.operations):
            if index not in sound:
                read_outside += [self._fixing[o] for o in operation.inputs if o is not None]
        results = [operand for operand in dict.fromkeys(read_outside) if operand in written]
        return Model(
            model.name,
            {f"input{index}": operand for index, operand in enumerate(read)},
            operations,
            {f"output{index}": operand for index, operand in enumerate(results)},
        )
