"""Small models for tests: shorthand, and ways to run them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import (
    YES,
    Capabilities,
    Device,
    Kind,
    Offer,
    Options,
    Precision,
    Program,
    Rule,
    Support,
)
from crosschip.ir import (
    Array,
    Builder,
    Dim,
    ElementType,
    Model,
    Operand,
    Operation,
    TensorType,
)
from crosschip.lowering.decomposition import Ask
from crosschip.ops import Operator

ROOT = Path(__file__).parents[1]


def float32(*shape: Dim) -> TensorType:
    """The type of a float32 tensor of the shape."""
    return TensorType(ElementType.FLOAT32, shape)


def model_of(
    make: Callable[..., Operand | tuple[Operand, ...]], *types: TensorType, name: str = "model"
) -> Model:
    """The model with inputs x0, x1, … of the types that `make(builder, x0, x1, …)` builds.

    What it returns becomes the outputs y0, y1, ….
    """
    b = Builder(name)
    results = make(b, *(b.input(f"x{i}", type_) for i, type_ in enumerate(types)))
    for i, result in enumerate(results if isinstance(results, tuple) else (results,)):
        b.output(f"y{i}", result)
    return b.build()


def chain(*operators: type[Operator], name: str = "net", size: Dim = 2) -> Model:
    """The model that applies operators of one tensor, one after the other, to some numbers."""

    def make(b: Builder, x: Operand) -> Operand:
        for each in operators:
            x = b.add(each, x)
        return x

    return model_of(make, float32(size), name=name)


def outputs_of(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of the reference device, without anything of the runtime."""
    arrays = ReferenceProgram(model).run([inputs[name] for name in model.inputs])
    return dict(zip(model.outputs, arrays, strict=True))


def dedented(text: str) -> str:
    """A text block as it would be at the left margin, without the lines it begins and ends on."""
    return textwrap.dedent(text).strip()


def contents(model: Model) -> tuple[str, list[bytes]]:
    """All that a model says: its text, and the bytes of its constants."""
    values = [np.asarray(operand.value) for operand in model.constants]
    return str(model), [value.tobytes() for value in values]


def close(actual: Array, expected: Array) -> None:
    """Assert that two results are equal up to the rounding of a few sums."""
    assert actual.dtype == expected.dtype
    relative = 1e-7 if expected.dtype == np.float64 else 1e-5  # parameters are float32
    scale = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(actual, expected, rtol=relative, atol=relative * scale, strict=True)


class DelegatingDevice(Device):
    """The reference device under another name, with wishes of its own.

    Attributes:
        declines: the operators that it does not run.
        fails: the operators that it says yes to and then fails to compile.
        compiled: the names of the models that it has compiled, in order.
        closed: how often it has been closed.
    """

    vendor = "tests"
    kind = Kind.CPU

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        name: str = "test",
        declines: Collection[str] = (),
        fails: Collection[str] = (),
    ) -> None:
        super().__init__(properties)
        self.name = name
        self.declines = declines
        self.fails = fails
        self.compiled: list[str] = []
        self.closed = 0
        self._reference = ReferenceDevice()

    @property
    def code(self) -> str:
        """Empty: subclasses in other files of tests stand for the same device."""
        return ""

    @property
    def version(self) -> str:
        return "1.0"

    def capabilities(self) -> Capabilities:
        return Capabilities(precisions=frozenset(Precision), threads=True)

    def supports(self, operation: Operation, options: Options) -> Support:
        if operation.type in self.declines:
            return Support.no(operation, "", "not implemented", Rule.OPERATOR)
        return YES

    def compile(self, model: Model, options: Options) -> Program:
        self.compiled.append(model.name)
        for operation in model.operations:
            if operation.type in self.fails:
                raise RuntimeError(f"the compiler of {self.name} crashed on {operation.type}")
        return self._reference.compile(model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._reference.load(saved, model, options)

    def close(self) -> None:
        self.closed += 1


def asks(supports: Callable[[Operation], Support]) -> Ask:
    """A device that answers about each operation by itself."""
    return lambda model: Offer([supports(operation) for operation in model.operations])


def python_path() -> str:
    """`PYTHONPATH` for a process that imports the tests, besides what this one imports."""
    return os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))


def at_once(program: str, *arguments: str, count: int = 8) -> list[str]:
    """The texts that Python processes print that run a program at once; none of them may fail.

    The program must wait for a line of input before it does what is to happen at once.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": python_path()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = []
    for process in processes:
        out, err = process.communicate()
        assert (process.returncode, err) == (0, "")
        printed.append(out)
    return printed
