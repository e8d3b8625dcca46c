"""Compiled models: a module of IREE in a context, and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import iree.runtime as runtime
import numpy as np

from crosschip.devices.iree.memory import Memory
from crosschip.devices.kits.stablehlo.padded import cut, open_axes
from crosschip.devices.kits.stablehlo.weights import OnChip
from crosschip.hal import Program
from crosschip.ir import Array, DeviceError, Model


class IreeProgram(Program):
    """A model of static shapes, or one operation with data-dependent output sizes.

    The module pads such sizes and returns the actual size as an additional output; the padding is
    removed on the host.

    Args:
        memory: the memory of the runtime's device.
        context: the runtime's context of the module.
        function: the function of the module.
        weights: its first arguments.
        model: the source model.
        rules: the error messages, one per element of the last output.
        saved: the program as bytes.
    """

    def __init__(
        self,
        memory: Memory,
        context: Any,
        function: Any,
        weights: Sequence[OnChip],
        model: Model,
        rules: Sequence[str],
        saved: bytes,
    ) -> None:
        self._memory = memory
        self._context = context
        self._function = function
        self._keep_alive = weights
        self._weights = [weight.value for weight in weights]
        self._held = memory.extents(self._weights)
        self._padded = open_axes(model)
        self._messages = tuple(rules)
        self._saved = saved
        self._types = [np.dtype(o.type.element_type.dtype) for o in model.outputs.values()]
        self._types += [np.dtype(np.int64)] * bool(self._padded)
        self._types += [np.dtype(np.bool_)] * bool(rules)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        arguments = runtime.VmVariantList(len(self._weights) + len(inputs))
        for weight in self._weights:
            arguments.push_ref(weight)
        lent = []
        for array in inputs:
            view, source = self._memory.lend(array)
            arguments.push_ref(view)
            lent.append(source)
        results = runtime.VmVariantList(len(self._types))
        try:
            self._context.invoke(self._function, arguments, results)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise DeviceError(f"iree failed while running: {error}") from error
        views = [
            (results.get_as_object(index, runtime.HalBufferView), dtype)
            for index, dtype in enumerate(self._types)
        ]
        return self._finish(self._memory.owned(views, lent, self._held))

    def save(self) -> bytes:
        return bytes(self._saved)

    def close(self) -> None:
        vars(self).clear()

    def _finish(self, outputs: list[Array]) -> Sequence[Array]:
        """Check the rules, and remove padding."""
        if self._messages:
            holds = outputs.pop()
            if not holds.all():
                raise DeviceError(f"iree: {self._messages[int(holds.argmin())]}")
        if not self._padded:
            return outputs
        count = int(outputs.pop())
        return [
            output if axis is None else cut(output, axis, count)
            for output, axis in zip(outputs, self._padded, strict=True)
        ]


class ForeignProgram(Program):
    """A program for another machine, which can be saved, and not run.

    Args:
        saved: the program as bytes.
        reason: why it does not run here.
    """

    def __init__(self, saved: bytes, reason: str) -> None:
        self._saved = saved
        self._reason = reason

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        raise DeviceError(f"iree: {self._reason}; save it and run it there")

    def save(self) -> bytes:
        return bytes(self._saved)
