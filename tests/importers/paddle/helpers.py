"""Helpers of the tests: minimal models, and execution on the reference device."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer, write_attribute

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.importers import load
from crosschip.importers.paddle import messages
from crosschip.ir import Array, Error, Model
from crosschip.ir.control import ControlFlow

VALUE = np.eye(3, dtype=np.float32)


def import_error(path: Path) -> str:
    """Return the error message of a file's import, which begins with the file's name."""
    with pytest.raises(Error) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path.parent))
    return message


def modified_model(
    models: Path, operator: str, setting: str, folder: Path, **attributes: Any
) -> Path:
    """Copy Paddle's model of one operator, with other attributes."""
    source = models / "operators" / "pdmodel" / operator / f"{setting}.pdmodel"
    kind: Any = messages.message_class(messages.ProgramDesc)
    program = kind.FromString(source.read_bytes())
    op = next(op for op in program.blocks[0].ops if op.type.decode() == operator)
    for name, value in attributes.items():
        for attribute in [a for a in op.attrs if a.name.decode() == name]:
            op.attrs.remove(attribute)
        write_attribute(op.attrs.add(name=name.encode()), value)
    path = folder / source.name
    path.write_bytes(program.SerializeToString())
    parameters = source.with_suffix(".pdiparams")
    if parameters.exists():
        shutil.copy(parameters, folder)
    return path


def small() -> Paddle2Writer:
    """Return a Paddle 2 model that multiplies `x` [N, 3] by a parameter `w`."""
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, 3])
    writer.parameter("w", VALUE)
    writer.variable("y", "float32", [-1, 3])
    writer.operator("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y"})
    writer.output("y")
    return writer


def small_3() -> Paddle3Writer:
    """Return the same model in Paddle 3's format."""
    writer = Paddle3Writer()
    w = writer.parameter("w", VALUE)
    x = writer.input("x", "float32", [-1, 3])
    writer.output(writer.operator("1.matmul", [x, w]))
    return writer


def outputs(model: Model, inputs: Mapping[str, Array]) -> list[Array]:
    """Return the outputs of the model for inputs by name."""
    model.verify()
    if any(isinstance(operation, ControlFlow) for operation in model.operations):
        with crosschip.compile(model, ["reference"], cache=False) as compiled:
            feeds = {name: inputs[name] for name in model.inputs}
            return list(cast("dict[str, Array]", compiled.run(feeds)).values())
    program = ReferenceDevice().compile(model, Options())
    return list(program.run([inputs[name] for name in model.inputs]))


def normal(seed: int, *shape: int) -> Array:
    """Return seeded normal random numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def error(result: Array, expected: Array) -> float:
    """Return the largest difference, relative to the largest expected magnitude."""
    assert result.shape == expected.shape
    largest = float(np.abs(expected).max())
    return float(np.abs(result.astype(np.float64) - expected).max()) / (largest or 1.0)
