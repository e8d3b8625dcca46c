"""Paddle Inference's predictors: compiled models with inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crosschip.apis.paddle.session import Session
from crosschip.apis.paddle.values import Value, find_value
from crosschip.apis.paddle_inference.config import Config
from crosschip.apis.paddle_inference.tensor import Tensor
from crosschip.ir import Array, InputError, UnsupportedError


class Predictor:
    """A compiled model. Clones share it and may run in parallel threads.

    Args:
        config: the model, and how to run it.

    Raises:
        InputError: the configuration names no model.
        Error: see `crosschip.load` and `crosschip.compile`.
    """

    def __init__(self, config: Config) -> None:
        self._hold(Session(config.loader(), config.arguments()))

    @classmethod
    def _of(cls, session: Session) -> Predictor:
        predictor = cls.__new__(cls)
        predictor._hold(session)
        return predictor

    def _hold(self, session: Session) -> None:
        self._session = session
        self._inputs = {name: Value(name) for name in session.inputs}
        self._outputs = {name: Value(name) for name in session.outputs}

    def get_input_names(self) -> list[str]:
        """Return the input names, in the model's order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Return the output names, in the model's order."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """Return the handle of an input.

        Raises:
            InputError: no input has this name.
        """
        return Tensor(find_value("input", name, self._inputs), is_input=True)

    def get_output_handle(self, name: str) -> Tensor:
        """Return the handle of an output.

        Raises:
            InputError: no output has this name.
        """
        return Tensor(find_value("output", name, self._outputs), is_input=False)

    def run(self, inputs: Sequence[Any] | None = None) -> list[Array] | None:
        """Compute the outputs.

        Args:
            inputs: arrays or tensors for all inputs in order; `None` if set through the
                handles.

        Returns:
            The outputs in order where inputs are given, else `None`.

        Raises:
            InputError: an input is missing, or does not match the model.
            DeviceError: a device failed.
        """
        if inputs is not None:
            if len(inputs) != len(self._inputs):
                raise InputError(
                    f"run: {len(inputs)} inputs are given, but the model takes {len(self._inputs)}"
                )
            for name, array in zip(self._inputs, inputs, strict=True):
                self.get_input_handle(name).share_external_data(array)
        self._session.run(self._inputs, self._outputs)
        if inputs is None:
            return None
        return [value.elements() for value in self._outputs.values()]

    def clone(self) -> Predictor:
        """Return a predictor of the same model with its own inputs and outputs."""
        return Predictor._of(self._session)

    def clear_intermediate_tensor(self) -> None:
        """Do nothing: devices release intermediate results on their own."""

    def try_shrink_memory(self) -> int:
        """Do nothing: devices release memory on their own.

        Returns:
            The number of bytes released: 0.
        """
        return 0

    def register_output_hook(self, hook: Callable[..., None]) -> None:
        """Raise `UnsupportedError`: devices do not expose intermediate results.

        Raises:
            UnsupportedError: always.
        """
        raise UnsupportedError(
            "register_output_hook: devices hand out no intermediate results; leave the hook out"
        )

    register_input_hook = register_output_hook


class PredictorPool:
    """Predictors of one model.

    Args:
        config: the model, and how to run it.
        size: the number of predictors.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(1, size))]

    def retrieve(self, idx: int) -> Predictor:
        """Return a predictor by its index.

        Raises:
            InputError: the index is out of range.
        """
        if not 0 <= idx < len(self._predictors):
            raise InputError(f"retrieve: there is no predictor {idx} of {len(self._predictors)}")
        return self._predictors[idx]

    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """Create a predictor.

    Raises:
        InputError: the configuration names no model.
        Error: see `crosschip.load` and `crosschip.compile`.
    """
    return Predictor(config)
