"""PyTorch on one chip: compilation of models to functions, and their restoring."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch

from crosschip.devices.torch.calls import function_of
from crosschip.devices.torch.converters import converters
from crosschip.devices.torch.elements import inner
from crosschip.devices.torch.host_state import State
from crosschip.devices.torch.memory import TorchBuffer, failure, place
from crosschip.devices.torch.open_sizes import call_of
from crosschip.devices.torch.program import TorchProgram
from crosschip.hal import Options, Support
from crosschip.ir import DeviceError, ElementType, Model


class Engine:
    """PyTorch and one of its chips.

    Args:
        name: the name that `probe` returns, such as `cpu` or `cuda:0`.
        mode: when models are compiled as one graph: `off`, `auto` or `on`.

    Attributes:
        chip: the full name of the chip.

    Raises:
        DeviceError: there is no such chip.
    """

    def __init__(self, name: str, mode: str) -> None:
        self.version = str(torch.__version__)
        self._mode = mode
        try:
            self._chip = torch.device(name)
            torch.empty(1, device=self._chip)
        except (AssertionError, RuntimeError) as error:
            raise failure(f"has no chip {name!r} here", error) from error
        module = getattr(torch, self._chip.type, None)
        described = getattr(module, "get_device_name", None)
        self.chip: str = described(self._chip) if described else self._chip.type

    def query(self, model: Model) -> Sequence[Support]:
        """Return the support of each operation of a model."""
        return [converters.supports(operation) for operation in model.operations]

    def compile(self, model: Model, options: Options, device: object) -> TorchProgram:
        """Compile a model all of whose operations have converters.

        Raises:
            CompileError: an operation cannot be compiled.
        """
        return self._program(model, options, device, self._mode)

    def load(self, saved: bytes, model: Model, options: Options, device: object) -> TorchProgram:
        """Compile a model as it was when its program was saved.

        Raises:
            DeviceError: the data was not saved by `save`.
        """
        try:
            settings = json.loads(bytes(saved))
            mode = str(settings["compile"])
        except (LookupError, TypeError, ValueError) as error:
            raise DeviceError(f"torch: failed to load a saved program: {error}") from error
        return self._program(model, options, device, mode)

    def allocate(
        self, element_type: ElementType, shape: tuple[int, ...], device: object
    ) -> TorchBuffer:
        """Allocate a buffer of zeros on the chip."""
        try:
            with torch.inference_mode():
                zeros = torch.zeros(shape, dtype=inner(element_type), device=self._chip)
        except RuntimeError as error:
            raise failure("failed to allocate memory", error) from error
        return TorchBuffer(zeros, element_type, device)

    def _program(self, model: Model, options: Options, device: object, mode: str) -> TorchProgram:
        calls = [call_of(operation) for operation in model.operations]
        state = State(self._chip, options.threads_each)
        with torch.inference_mode():
            constants = {
                operand: place(operand.value, self._chip)
                for operand in model.constants
                if operand.value is not None
            }
        function = function_of(model, calls, constants)
        if mode != "off":
            from crosschip.devices.torch.whole_graph import one_graph

            graph = one_graph(model, function, state, self._chip, only_if_faster=mode == "auto")
            # What was saved is one graph again, or calls again, without another measurement.
            mode, function = ("off" if graph is function else "on"), graph
        settings: dict[str, object] = {"compile": mode}
        return TorchProgram(model, calls, constants, function, state, self._chip, device, settings)
