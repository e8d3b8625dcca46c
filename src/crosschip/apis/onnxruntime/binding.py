"""Bindings: inputs and outputs of runs that are set in advance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.apis.onnxruntime.errors import InvalidArgument
from crosschip.apis.onnxruntime.values import (
    CPU,
    OrtValue,
    OrtValueVector,
    array_at,
    require_processor,
)
from crosschip.ir import Array

if TYPE_CHECKING:
    from crosschip.apis.onnxruntime.session import InferenceSession


class IOBinding:
    """The inputs and outputs of a session's runs.

    Attributes:
        inputs: the inputs, by name.
        targets: the array to write each bound output to, by name; `None` for a new one.
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._results: list[OrtValue] = []
        self.inputs: dict[str, Any] = {}
        self.targets: dict[str, Array | None] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        """Bind an input to an array."""
        self._require("input", name)
        self.inputs[name] = arr_on_cpu

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: object,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Bind an input to memory at an address."""
        require_processor(device_type)
        self._require("input", name)
        self.inputs[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an input to a value."""
        self._require("input", name)
        self.inputs[name] = ortvalue.value

    def bind_output(
        self,
        name: str,
        device_type: str = CPU,
        device_id: int = 0,
        element_type: object = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Bind an output to memory at an address, or to memory that the run allocates.

        Raises:
            ValueError: there is an address, but no type or shape.
        """
        require_processor(device_type)
        self._require("output", name)
        if buffer_ptr is None:
            self.targets[name] = None
        elif element_type is None or shape is None:
            raise ValueError(
                "`element_type` and `shape` are to be provided if pre-allocated memory is provided"
            )
        else:
            self.targets[name] = array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Bind an output to a tensor, which the run overwrites."""
        self._require("output", name)
        self.targets[name] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Do nothing: inputs are in host memory."""

    def synchronize_outputs(self) -> None:
        """Do nothing: runs return when the outputs are there."""

    def get_outputs(self) -> OrtValueVector:
        """Return the outputs of the last run, in the order in which they were bound."""
        return OrtValueVector(self._results)

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Return the outputs of the last run as arrays."""
        return [
            np.array(result.value) if result.is_tensor() else result.value
            for result in self._results
        ]

    def clear_binding_inputs(self) -> None:
        """Remove the inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Remove the outputs."""
        self.targets.clear()
        self._results = []

    def take(self, results: Sequence[Any]) -> None:
        """Keep the results of a run, in the order of the bound outputs."""
        self._results = [OrtValue(value) for value in results]

    def _require(self, kind: str, name: str) -> None:
        node_args = self._session.get_inputs() if kind == "input" else self._session.get_outputs()
        if name not in [node_arg.name for node_arg in node_args]:
            listed = ", ".join(node_arg.name for node_arg in node_args)
            raise InvalidArgument.of(f"there is no {kind} {name!r}; there are {listed}")
