"""Predictors: models that have been compiled, with their inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crosschip.apis.paddle.session import Session
from crosschip.apis.paddle.values import Value, named
from crosschip.apis.paddle_inference.config import Config
from crosschip.apis.paddle_inference.tensor import Tensor
from crosschip.ir import Array, InputError, UnsupportedError


class Predictor:
    """A model that runs. Clones share it, and may run in threads at the same time.

    Args:
        config: which model, and how it is to run.

    Raises:
        InputError: the configuration names no model.
        Error: as of `crosschip.load` and `crosschip.compile`.
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
        """The names of the inputs, in the order of the model."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of the outputs, in the order of the model."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input.

        Raises:
            InputError: there is none of this name.
        """
        return Tensor(named("input", name, self._inputs), is_input=True)

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output.

        Raises:
            InputError: there is none of this name.
        """
        return Tensor(named("output", name, self._outputs), is_input=False)

    def run(self, inputs: Sequence[Any] | None = None) -> list[Array] | None:
        """Compute the outputs.

        Args:
            inputs: arrays or tensors for all inputs in order; `None` if their handles have them.

        Returns:
            The outputs in order where inputs are given, else `None`.

        Raises:
            InputError: an input is missing, or does not fit.
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
        """A predictor of the same model with inputs and outputs of its own."""
        return Predictor._of(self._session)

    def clear_intermediate_tensor(self) -> None:
        """Release intermediate results; devices do so by themselves."""

    def try_shrink_memory(self) -> int:
        """Release memory that is not needed between runs; devices do so by themselves.

        Returns:
            How many bytes were released: 0.
        """
        return 0

    def register_output_hook(self, hook: Callable[..., None]) -> None:
        """Have a function called with each intermediate result; devices do not hand them out.

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
        config: which model, and how it is to run.
        size: how many there are.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        first = Predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(1, size))]

    def retrieve(self, idx: int) -> Predictor:
        """The predictor of a number, from 0 on.

        Raises:
            InputError: there are fewer.
        """
        if not 0 <= idx < len(self._predictors):
            raise InputError(f"retrieve: there is no predictor {idx} of {len(self._predictors)}")
        return self._predictors[idx]

    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """Make a predictor.

    Raises:
        InputError: the configuration names no model.
        Error: as of `crosschip.load` and `crosschip.compile`.
    """
    return Predictor(config)
