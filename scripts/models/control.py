"""Write small programs that branch and loop, with what Paddle computes with them.

Run inside an oracle environment: python control.py NAME DIRECTORY

A program is a Python function that Paddle translates, as users write them: `if` and `while` over
tensors become `conditional_block`, `select_input` and `while` in Paddle 2, `pd_op.if` and
`pd_op.while` in Paddle 3.
"""
# ruff: noqa: SIM108 - a conditional expression is no branch for Paddle to translate

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import paddle
from numpy.typing import NDArray
from paddle import nn, static

Array = NDArray[Any]
Tensor = Any


@dataclass(frozen=True)
class Setting:
    """A program and arrays to run it on.

    Attributes:
        compute: the program.
        specs: shape and element type of each input.
        calls: the inputs of each run.
    """

    compute: Callable[..., Any]
    specs: Sequence[tuple[list[int], str]]
    calls: Sequence[Sequence[Array]]


class Linear(nn.Layer):  # type: ignore[misc]  # Paddle is not installed where types are checked
    """A linear layer, and the function that uses it."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.compute = compute


class Program(Linear):
    """A function of a tensor as a layer."""

    def forward(self, x: Tensor) -> Any:
        """Run the function on the linear layer and the input."""
        return self.compute(self.linear, x)


class CountedProgram(Linear):
    """The same for a function of a tensor and a number."""

    def forward(self, x: Tensor, n: Tensor) -> Any:
        """Run the function on the linear layer and the inputs."""
        return self.compute(self.linear, x, n)


def branch(linear: nn.Layer, x: Tensor) -> Tensor:
    """Two branches, with parameters in one."""
    if x.sum() > 0:
        y = linear(x)
    else:
        y = -x - 1
    return y


def without_else(linear: nn.Layer, x: Tensor) -> Tensor:
    """A branch that changes a value, or not."""
    y = x + 1
    if x.sum() > 0:
        y = y * 2
    return y - x


def several_values(linear: nn.Layer, x: Tensor) -> tuple[Tensor, Tensor]:
    """Branches that make several values, one of them as it was."""
    if x.mean() > 0:
        y, z = x * 2, x.sum(axis=1)
    else:
        y, z = x, x.max(axis=1)
    return y + 1, z


def unlike_shapes(linear: nn.Layer, x: Tensor) -> Tensor:
    """Branches that make unlike shapes."""
    if x.sum() > 0:
        y = paddle.concat([x, x], axis=0)
    else:
        y = x * 3
    return y * 2


def branches_in_branches(linear: nn.Layer, x: Tensor) -> Tensor:
    """A branch in a branch."""
    s = x.sum()
    if s > 0:
        if s > 5:
            y = x * 5
        else:
            y = linear(x)
    else:
        y = -x
    return y


def times(linear: nn.Layer, x: Tensor, n: Tensor) -> Tensor:
    """A loop that counts."""
    i = paddle.zeros([1], "int64")
    while i < n:
        x = x * 2 + 1
        i = i + 1
    return x


def until_large(linear: nn.Layer, x: Tensor) -> tuple[Tensor, Tensor]:
    """A loop until a value that it computes says so."""
    i = paddle.zeros([1], "int64")
    while x.abs().sum() < 100:
        x = x * 2 + linear(x).abs()
        i = i + 1
    return x, i


def growing(linear: nn.Layer, x: Tensor, n: Tensor) -> Tensor:
    """A value that grows."""
    i = paddle.zeros([1], "int64")
    y = x
    while i < n:
        y = paddle.concat([y, x * i.astype("float32")], axis=0)
        i = i + 1
    return y


def branch_in_loop(linear: nn.Layer, x: Tensor, n: Tensor) -> Tensor:
    """A branch in a loop."""
    i = paddle.zeros([1], "int64")
    y = x
    while i < n:
        if y.sum() > 0:
            y = y - x * 2
        else:
            y = y + 3
        i = i + 1
    return y


def loop_in_branch(linear: nn.Layer, x: Tensor, n: Tensor) -> Tensor:
    """A loop in one of two branches."""
    if x.sum() > 0:
        i = paddle.zeros([1], "int64")
        y = x
        while i < n:
            y = linear(y)
            i = i + 1
    else:
        y = x - 1
    return y


def loop_in_loop(linear: nn.Layer, x: Tensor, n: Tensor) -> Tensor:
    """A loop in a loop."""
    i = paddle.zeros([1], "int64")
    y = x
    while i < n:
        j = paddle.zeros([1], "int64")
        while j < i:
            y = y * 0.5 + x
            j = j + 1
        i = i + 1
    return y


def known(linear: nn.Layer, x: Tensor) -> Tensor:
    """A loop that is known to run three times."""
    i = paddle.zeros([1], "int64")
    while i < 3:
        x = x * 2
        i = i + 1
    return x


X = np.array([[1, -2, 3], [0.5, 1, -0.25]], np.float32)
MATRIX: tuple[list[int], str] = ([2, 3], "float32")
OPEN: tuple[list[int], str] = ([-1, 3], "float32")
COUNT: tuple[list[int], str] = ([1], "int64")
SIGNS = [(X,), (-X,)]
COUNTED = [(X, np.array([n])) for n in (0, 1, 4)]

SETTINGS = {
    "branch": Setting(branch, [MATRIX], SIGNS),
    "branch_of_open_size": Setting(branch, [OPEN], [*SIGNS, (X[:1],), (-X[:1],)]),
    "without_else": Setting(without_else, [MATRIX], SIGNS),
    "several_values": Setting(several_values, [OPEN], SIGNS),
    "unlike_shapes": Setting(unlike_shapes, [MATRIX], SIGNS),
    "branches_in_branches": Setting(branches_in_branches, [MATRIX], [*SIGNS, (X * 9,)]),
    "times": Setting(times, [OPEN, COUNT], COUNTED),
    "until_large": Setting(until_large, [MATRIX], [(X,), (X * 100,)]),
    "growing": Setting(growing, [OPEN, COUNT], COUNTED),
    "branch_in_loop": Setting(branch_in_loop, [MATRIX, COUNT], COUNTED),
    "loop_in_branch": Setting(loop_in_branch, [MATRIX, COUNT], [*COUNTED, (-X, np.array([2]))]),
    "loop_in_loop": Setting(loop_in_loop, [MATRIX, COUNT], COUNTED),
    "known": Setting(known, [MATRIX], SIGNS),
}


def main(directory: Path, settings: Mapping[str, Setting] = SETTINGS) -> None:
    """Write `SETTING/model`, with the suffixes of the model, and `SETTING/oracle-N.npz`."""
    for name, setting in settings.items():
        paddle.seed(0)
        folder = directory / name
        folder.mkdir()
        specs = [
            static.InputSpec(shape, dtype, f"x{index}")
            for index, (shape, dtype) in enumerate(setting.specs)
        ]
        net = (Program if len(specs) == 1 else CountedProgram)(setting.compute)
        net.eval()
        paddle.jit.save(paddle.jit.to_static(net, input_spec=specs), str(folder / "model"))
        program = next(p for p in folder.iterdir() if p.suffix in (".pdmodel", ".json"))
        params = folder / "model.pdiparams"
        predictor = oracle.load([program, params] if params.exists() else [program])
        for number, call in enumerate(setting.calls):
            inputs = {f"x{index}": array for index, array in enumerate(call)}
            outputs = oracle.run(predictor, inputs)
            arrays: dict[str, Any] = {f"input:{key}": value for key, value in inputs.items()}
            arrays |= {f"output:{index}": value for index, value in enumerate(outputs)}
            np.savez_compressed(folder / f"oracle-{number}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[2]))
