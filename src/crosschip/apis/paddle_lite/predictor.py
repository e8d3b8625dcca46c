"""Predictors: models that have been compiled, with their inputs and outputs."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from crosschip.apis.paddle.values import Value, named
from crosschip.apis.paddle_lite.config import PARAMETERS, PROGRAM, ConfigBase, CxxConfig
from crosschip.apis.paddle_lite.tensor import Tensor
from crosschip.ir import InputError

VERSION = "v2.14"
"""The version of Paddle Lite whose interface this is."""

_SUFFIX = ".nb"


class LightPredictor:
    """A model that runs.

    Args:
        config: which model, and how it is to run.

    Raises:
        InputError: the configuration names no model.
        Error: as of `crosschip.load` and `crosschip.compile`.
    """

    def __init__(self, config: ConfigBase) -> None:
        self._session = config.session()
        self._inputs = {name: Value(name) for name in self._session.inputs}
        self._outputs = {name: Value(name) for name in self._session.outputs}

    def get_input_names(self) -> list[str]:
        """The names of the inputs, in the order of the model."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of the outputs, in the order of the model."""
        return list(self._outputs)

    def get_input(self, index: int) -> Tensor:
        """An input by its number, from 0 on.

        Raises:
            InputError: there are fewer.
        """
        return Tensor(_numbered("input", index, self._inputs))

    def get_output(self, index: int) -> Tensor:
        """An output by its number, from 0 on.

        Raises:
            InputError: there are fewer.
        """
        return Tensor(_numbered("output", index, self._outputs))

    def get_input_by_name(self, name: str) -> Tensor:
        """An input by its name.

        Raises:
            InputError: there is none.
        """
        return Tensor(named("input", name, self._inputs))

    def get_output_by_name(self, name: str) -> Tensor:
        """An output by its name.

        Raises:
            InputError: there is none.
        """
        return Tensor(named("output", name, self._outputs))

    def run(self) -> None:
        """Compute the outputs.

        Raises:
            InputError: an input is missing, or does not fit.
            DeviceError: a device failed.
        """
        self._session.run(self._inputs, self._outputs)

    def get_version(self) -> str:
        """The version of Paddle Lite whose interface this is, and crosschip's own."""
        return f"{VERSION}-crosschip-{version('crosschip')}"


class CxxPredictor(LightPredictor):
    """A model of Paddle's own that runs, and can be saved as it was compiled.

    Args:
        config: which model, and how it is to run.

    Raises:
        Error: as for `LightPredictor`.
    """

    def __init__(self, config: CxxConfig) -> None:
        super().__init__(config)
        self._files = config.files()

    def save_optimized_model(self, path: str) -> None:
        """Write the compiled model to a file, which `MobileConfig.set_model_from_file` takes.

        Args:
            path: of the file, without its ending `.nb`.

        Raises:
            InputError: it cannot be written there.
            UnsupportedError: a device does not save its programs.
        """
        self._session.compiled.save(path if Path(path).suffix == _SUFFIX else f"{path}{_SUFFIX}")

    def save_optimized_pb_model(self, path: str) -> None:
        """Write the model as a program of Paddle's, which `CxxConfig.set_model_dir` takes.

        It is the program that was given: what is optimised is compiled, and no program.

        Args:
            path: of the folder, where the files `model` and `params` are written.

        Raises:
            InputError: they cannot be written there.
            ModelFileError: the model is there no more.
        """
        self._files.write(Path(path) / PROGRAM, Path(path) / PARAMETERS)

    def Synchronize(self) -> None:
        """Wait for the end of what runs; `run` has waited for it."""


def create_paddle_predictor(config: ConfigBase) -> LightPredictor:
    """Make a predictor.

    Raises:
        InputError: the configuration names no model.
        Error: as of `crosschip.load` and `crosschip.compile`.
    """
    return CxxPredictor(config) if isinstance(config, CxxConfig) else LightPredictor(config)


def _numbered(kind: str, index: int, values: dict[str, Value]) -> Value:
    if not isinstance(index, int) or not 0 <= index < len(values):
        raise InputError(f"there is no {kind} {index!r} of {len(values)}: {', '.join(values)}")
    return list(values.values())[index]
