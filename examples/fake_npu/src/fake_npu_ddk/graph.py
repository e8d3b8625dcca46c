"""Building a graph: tensors, and nodes that make them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fake_npu_ddk.limits import MAX_BIAS, check, check_tensor
from fake_npu_ddk.operators import CONSTANT_INPUTS, Operator, Settings
from fake_npu_ddk.status import NpuError, Status
from fake_npu_ddk.tensors import Array, DataType, Tensor


@dataclass(frozen=True, slots=True)
class Node:
    """One use of an operator; tensors are numbers, in the order in which the graph got them."""

    operator: Operator
    inputs: tuple[int, ...]
    output: int
    settings: Settings


class Graph:
    """A graph; inputs and constants first come first, and nodes behind those that they read.

    Attributes:
        tensors: all tensors, by number.
        constants: the elements of those that are constant.
        nodes: the nodes, in order.
        inputs: the numbers of those that come with a run.
        outputs: the numbers of those that a run makes.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.constants: dict[int, Array] = {}
        self.nodes: list[Node] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self._finished = False

    def input(self, tensor: Tensor) -> int:
        """A tensor that comes with each run."""
        check_tensor(tensor)
        self.inputs.append(self._new(tensor))
        return self.inputs[-1]

    def constant(self, tensor: Tensor, elements: Array) -> int:
        """A tensor that is part of the program.

        Raises:
            NpuError: the elements are of another type or shape, or a bias is too great.
        """
        check_tensor(tensor)
        if elements.dtype != tensor.type.dtype or elements.shape != tensor.shape:
            raise NpuError(
                Status.INVALID_ARGUMENT, f"{elements.dtype}{list(elements.shape)} for {tensor}"
            )
        if tensor.type is DataType.INT32 and np.abs(elements.astype(np.int64)).max() > MAX_BIAS:
            raise NpuError(Status.UNSUPPORTED_SETTING, f"a bias of more than {MAX_BIAS}")
        number = self._new(tensor)
        self.constants[number] = elements
        return number

    def add(
        self,
        operator: Operator,
        inputs: Sequence[int],
        output: Tensor,
        settings: Settings = Settings(),  # noqa: B008  # frozen
    ) -> int:
        """A node; the number of the tensor that it makes.

        Raises:
            NpuError: the chip does not do it.
        """
        if not all(0 <= number < len(self.tensors) for number in inputs):
            raise NpuError(Status.INVALID_ARGUMENT, f"there are no tensors {list(inputs)}")
        check(operator, [self.tensors[number] for number in inputs], output, settings)
        for place in CONSTANT_INPUTS.get(operator, ()):
            if inputs[place] not in self.constants:
                raise NpuError(
                    Status.UNSUPPORTED_SETTING, f"input {place} of {operator.name} is computed"
                )
        number = self._new(output)
        self.nodes.append(Node(operator, tuple(inputs), number, settings))
        return number

    def is_made(self, number: int) -> bool:
        """Tell whether a node makes a tensor."""
        return number not in self.constants and number not in self.inputs

    def output(self, number: int) -> None:
        """Make a tensor that a node makes one of those that a run makes."""
        if not self.is_made(number) or number in self.outputs:
            raise NpuError(Status.INVALID_ARGUMENT, f"tensor {number} cannot be an output")
        self.outputs.append(number)

    def finish(self) -> Graph:
        """The graph, to which nothing can be added any more.

        Raises:
            NpuError: it makes nothing.
        """
        if not self.outputs:
            raise NpuError(Status.INVALID_ARGUMENT, "the graph has no output")
        self._finished = True
        return self

    def _new(self, tensor: Tensor) -> int:
        if self._finished:
            raise NpuError(Status.INVALID_ARGUMENT, "the graph is finished")
        self.tensors.append(tensor)
        return len(self.tensors) - 1
