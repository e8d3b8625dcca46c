"""Paddle Lite's predictors: compiled models with inputs and outputs."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from crosschip.apis.paddle.values import Value, find_value
from crosschip.apis.paddle_lite.config import PARAMETERS, PROGRAM, ConfigBase, CxxConfig
from crosschip.apis.paddle_lite.tensor import Tensor
from crosschip.ir import InputError

VERSION = "v2.14"
"""The Paddle Lite version that this interface follows."""

_SUFFIX = ".nb"


class LightPredictor:
    """A compiled model with its inputs and outputs.

    Args:
        config: the model, and how to run it.

    Raises:
        InputError: the configuration names no model.
        Error: see `crosschip.load` and `crosschip.compile`.
    """

    def __init__(self, config: ConfigBase) -> None:
        self._session = config.session()
        self._inputs = {name: Value(name) for name in self._session.inputs}
        self._outputs = {name: Value(name) for name in self._session.outputs}

    def get_input_names(self) -> list[str]:
        """Return the input names, in the model's order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Return the output names, in the model's order."""
        return list(self._outputs)

    def get_input(self, index: int) -> Tensor:
        """Return an input by its index.

        Raises:
            InputError: the index is out of range.
        """
        return Tensor(_value_at("input", index, self._inputs))

    def get_output(self, index: int) -> Tensor:
        """Return an output by its index.

        Raises:
            InputError: the index is out of range.
        """
        return Tensor(_value_at("output", index, self._outputs))

    def get_input_by_name(self, name: str) -> Tensor:
        """Return an input by its name.

        Raises:
            InputError: no input has this name.
        """
        return Tensor(find_value("input", name, self._inputs))

    def get_output_by_name(self, name: str) -> Tensor:
        """Return an output by its name.

        Raises:
            InputError: no output has this name.
        """
        return Tensor(find_value("output", name, self._outputs))

    def run(self) -> None:
        """Compute the outputs.

        Raises:
            InputError: an input is missing, or does not match the model.
            DeviceError: a device failed.
        """
        self._session.run(self._inputs, self._outputs)

    def get_version(self) -> str:
        """Return the Paddle Lite version that this interface follows, and crosschip's version."""
        return f"{VERSION}-crosschip-{version('crosschip')}"


class CxxPredictor(LightPredictor):
    """A Paddle model, compiled, which can be saved in its compiled form.

    Args:
        config: the model, and how to run it.

    Raises:
        Error: as for `LightPredictor`.
    """

    def __init__(self, config: CxxConfig) -> None:
        super().__init__(config)
        self._files = config.files()

    def save_optimized_model(self, path: str) -> None:
        """Write the compiled model to a file, which `MobileConfig.set_model_from_file` takes.

        Args:
            path: the file's path; `.nb` is appended unless present.

        Raises:
            InputError: the file cannot be written.
            UnsupportedError: a device cannot save its programs.
        """
        self._session.compiled.save(path if Path(path).suffix == _SUFFIX else f"{path}{_SUFFIX}")

    def save_optimized_pb_model(self, path: str) -> None:
        """Write the model as a Paddle program, which `CxxConfig.set_model_dir` takes.

        The original program is written: crosschip's optimizations have no form as a Paddle program.

        Args:
            path: the folder of the files `model` and `params`.

        Raises:
            InputError: a file cannot be written.
            ModelFileError: the model's files no longer exist.
        """
        self._files.write(Path(path) / PROGRAM, Path(path) / PARAMETERS)

    def Synchronize(self) -> None:
        """Do nothing: `run` returns after the outputs are computed."""


def create_paddle_predictor(config: ConfigBase) -> LightPredictor:
    """Create a predictor.

    Raises:
        InputError: the configuration names no model.
        Error: see `crosschip.load` and `crosschip.compile`.
    """
    return CxxPredictor(config) if isinstance(config, CxxConfig) else LightPredictor(config)


def _value_at(kind: str, index: int, values: dict[str, Value]) -> Value:
    if not isinstance(index, int) or not 0 <= index < len(values):
        raise InputError(f"there is no {kind} {index!r} of {len(values)}: {', '.join(values)}")
    return list(values.values())[index]
