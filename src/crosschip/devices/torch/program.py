"""Compiled models: a function of PyTorch calls, or a graph that PyTorch compiled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import perf_counter

import torch

from crosschip.devices.torch.calls import Call, failing_call, function_of
from crosschip.devices.torch.calls import Program as Function
from crosschip.devices.torch.host_state import State
from crosschip.devices.torch.memory import (
    TorchBuffer,
    TorchEvent,
    end_of_run,
    failure,
    fetch,
    fetching,
    owned,
    place,
    placing,
)
from crosschip.hal import Buffer, Event, Profiler, Program, Step, Submission
from crosschip.ir import Array, DeviceError, Model, Operand

_ERRORS = (
    ArithmeticError,
    AssertionError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


class TorchProgram(Program):
    """A model on a chip.

    Args:
        model: the model.
        calls: the calls of its operations.
        constants: its constants on the chip.
        function: computes the outputs from the inputs on the chip.
        state: the state of PyTorch in which it runs.
        chip: the chip.
        device: the `Device` that owns the outputs' memory.
        settings: what `save` keeps.
    """

    def __init__(
        self,
        model: Model,
        calls: Sequence[Call],
        constants: dict[Operand, torch.Tensor],
        function: Function,
        state: State,
        chip: torch.device,
        device: object,
        settings: dict[str, object],
    ) -> None:
        self._calls = calls
        self._constants = constants
        self._function = function
        self._state = state
        self._chip = chip
        self._device = device
        self._settings = settings
        self._model = model
        self._types = [operand.type.element_type for operand in model.outputs.values()]
        self._place = [placing(o.type.element_type, chip) for o in model.inputs.values()]
        self._fetch = [fetching(element_type, chip) for element_type in self._types]
        self._constant_memory = frozenset(
            tensor.untyped_storage().data_ptr() for tensor in constants.values()
        )

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._state.call(self._run, inputs)

    def _run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        tensors = [put(array) for put, array in zip(self._place, inputs, strict=True)]
        outputs = self._compute(tensors)
        return [get(output) for get, output in zip(self._fetch, outputs, strict=True)]

    def _compute(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs on the chip, which share no memory with inputs and constants."""
        try:
            outputs = self._function(*inputs)
            taken = {
                tensor.untyped_storage().data_ptr() for tensor in inputs
            } | self._constant_memory
            for index, tensor in enumerate(outputs):
                outputs[index] = owned(tensor, taken)
                taken.add(outputs[index].untyped_storage().data_ptr())
        except _ERRORS as error:
            raise self._explained(error) from error
        return outputs

    def _explained(self, error: BaseException) -> DeviceError:
        call = failing_call(error, self._calls)
        if call is None:
            return failure("failed while running", error)
        return failure(f"{call.operation.type} {call.operation.name!r}", error)

    def submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        return self._state.call(self._submit, inputs, outputs, after)

    def _submit(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer | None], after: Sequence[Event]
    ) -> Submission:
        for event in (*after, *(buffer.ready for buffer in inputs)):
            if isinstance(event, TorchEvent):
                event.order()
            else:
                event.wait()
        results = self._compute([self._tensor(buffer) for buffer in inputs])
        event = end_of_run(self._chip)
        targets = outputs or [None] * len(results)
        buffers: list[Buffer] = []
        for tensor, element_type, target in zip(results, self._types, targets, strict=True):
            if target is None:
                buffers.append(TorchBuffer(tensor, element_type, self._device, event))
                continue
            if isinstance(target, TorchBuffer):
                target.tensor.copy_(tensor)
                target.ready = event
            else:
                target.write(fetch(tensor, element_type))
            buffers.append(target)
        return Submission(buffers, event)

    def _tensor(self, buffer: Buffer) -> torch.Tensor:
        if isinstance(buffer, TorchBuffer) and buffer.tensor.device == self._chip:
            return buffer.tensor
        return place(buffer.array(), self._chip)

    def save(self) -> bytes:
        return json.dumps(self._settings).encode()

    def profiler(self) -> Profiler:
        # Imported late: rarely needed.
        from crosschip.devices.kits.step_profiler import StepProfiler

        return StepProfiler(self.timed)

    def timed(self, inputs: Sequence[Array]) -> tuple[Sequence[Array], list[Step]]:
        """Return the outputs and the time of each operation's call, also if one graph runs."""
        return self._state.call(self._timed, inputs)

    def _timed(self, inputs: Sequence[Array]) -> tuple[Sequence[Array], list[Step]]:
        steps: list[Step] = []
        first = perf_counter()

        def measured(call: Call) -> Call:
            def run(*tensors: torch.Tensor | None) -> object:
                start = perf_counter()
                result = call.kernel(*tensors)
                if self._chip.type != "cpu":
                    torch.accelerator.synchronize(self._chip)
                operation = call.operation
                seconds = perf_counter() - start
                steps.append(Step(operation.type, seconds, (operation,), start - first))
                return result

            return Call(call.operation, run, call.reads)

        function = function_of(self._model, [*map(measured, self._calls)], self._constants)
        tensors = [place(array, self._chip) for array in inputs]
        try:
            outputs = [owned(tensor, ()) for tensor in function(*tensors)]
        except _ERRORS as error:
            raise self._explained(error) from error
        return [fetch(*pair) for pair in zip(outputs, self._types, strict=True)], steps

    def close(self) -> None:
        vars(self).clear()
