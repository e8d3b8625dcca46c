"""Kernels: functions that compute a step, made when a program is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fake_npu_ddk.operators import Settings
from fake_npu_ddk.tensors import Array, Tensor

Kernel = Callable[[Sequence[Array], Array], None]
"""Reads the inputs and writes the output, views of memory without what fills up channels."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel is made for.

    Attributes:
        inputs: the tensors that it reads.
        output: the tensor that it makes.
        constants: the elements of those inputs that are constant.
        settings: the settings of the operator.
        rows: how many rows of the output to compute at once.
    """

    inputs: Sequence[Tensor]
    output: Tensor
    constants: Sequence[Array | None]
    settings: Settings
    rows: int

    def constant(self, place: int) -> Array:
        """The elements of an input that the operator wants constant."""
        elements = self.constants[place]
        assert elements is not None, "the graph and the loader have checked it"
        return elements
