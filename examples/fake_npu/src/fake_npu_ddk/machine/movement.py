"""What only moves elements, of either type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fake_npu_ddk.machine.kernel import Kernel, Work
from fake_npu_ddk.operators import Operator
from fake_npu_ddk.tensors import Array


def _reshape(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = inputs[0].reshape(output.shape)

    return run


def _transpose(work: Work) -> Kernel:
    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = inputs[0].transpose(work.settings.order)

    return run


def _pad(work: Work) -> Kernel:
    sides = np.reshape(work.settings.pads, (-1, 2))
    inside = tuple(
        slice(before, before + size)
        for (before, _), size in zip(sides, work.inputs[0].shape, strict=True)
    )

    def run(inputs: Sequence[Array], output: Array) -> None:
        output[...] = work.output.zero_point
        output[inside] = inputs[0]

    return run


KERNELS: dict[Operator, Callable[[Work], Kernel]] = {
    Operator.RESHAPE: _reshape,
    Operator.TRANSPOSE: _transpose,
    Operator.PAD: _pad,
}
