"""Small models for tests: shorthand, a way to run them, and random ones for property tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import YES, Device, Kind, Options, Program, Support
from crosschip.ir import (
    Array,
    Builder,
    Dim,
    ElementType,
    Model,
    Operand,
    Operation,
    TensorType,
    symbol,
)
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import HardSwish, Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.ops.standard.slicing import Slice

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


def chain(*operators: type[Operator], name: str = "net") -> Model:
    """The model that applies operators of one tensor, one after the other, to two numbers."""

    def make(b: Builder, x: Operand) -> Operand:
        for each in operators:
            x = b.add(each, x)
        return x

    return model_of(make, float32(2), name=name)


def outputs_of(model: Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What the reference device computes, without anything of the runtime."""
    arrays = ReferenceProgram(model).run([inputs[name] for name in model.inputs])
    return dict(zip(model.outputs, arrays, strict=True))


def dedented(text: str) -> str:
    """A text block as it would be at the left margin, without the lines it begins and ends on."""
    return textwrap.dedent(text).strip()


def contents(model: Model) -> tuple[str, list[bytes]]:
    """All that a model says: its text, and the bytes of its constants."""
    values = [np.asarray(operand.value) for operand in model.constants]
    return str(model), [value.tobytes() for value in values]


@dataclass
class Example:
    """A random model, with inputs to run it on.

    Attributes:
        positive: it is in float32, and no number in it is negative, so that sums lose no digits to
            cancellation; otherwise it is in float64.
    """

    model: Model
    inputs: dict[str, Array]
    positive: bool

    def __repr__(self) -> str:
        return str(self.model)


def close(actual: Array, expected: Array, example: Example | None = None) -> None:
    """Assert that two results are equal up to the rounding of a few sums.

    Args:
        actual: what was computed.
        expected: what it should be.
        example: what it is a result of; float32 is taken for it if not given.
    """
    assert actual.dtype == expected.dtype
    relative = 1e-5 if example is None or example.positive else 1e-7  # parameters are float32
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
    def version(self) -> str:
        return "1.0"

    def supports(self, operation: Operation) -> Support:
        if operation.type in self.declines:
            return Support.no(f"{operation.type}: not implemented")
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


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Models of a few operations: layers, what folds into them, and what does nothing."""
    growing = _Growing(draw)
    for _ in range(draw(st.integers(0, 8))):
        for grow in draw(st.sampled_from(_STEPS)):
            grow(growing)
    return growing.example()


class _Growing:
    """A model in the making. What is drawn shrinks: less of everything is simpler."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 999)))
        self.positive = draw(st.booleans())
        self.type = ElementType.FLOAT32 if self.positive else ElementType.FLOAT64
        self.b = Builder("random")
        self.inputs: dict[str, Array] = {}
        self.sizes: dict[str, Dim] = {}
        self.images = [self.input("image", self.pick(1, 2), self.pick(1, 2, 4), 3, 2)]
        self.matrices = [self.input("matrix", self.pick(1, 3), self.pick(1, 2, 4))]
        self.others: list[Operand] = []
        self.last: Operand = self.images[0]

    def pick(self, *options: int) -> int:
        return self.draw(st.sampled_from(options))

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def input(self, name: str, batch: int, *shape: int) -> Operand:
        """An input, for which the first size may be left open."""
        self.inputs[name] = self.numbers(batch, *shape)
        first: Dim = batch
        if self.flip():
            first = symbol(f"{name}s")
            self.sizes[f"{name}s"] = batch
        return self.b.input(name, TensorType(self.type, (first, *shape)))

    def sizes_of(self, operand: Operand) -> tuple[int, ...]:
        """The sizes that an operand will have when the model is run on the inputs."""
        shape = operand.type.substitute(self.sizes).static_shape
        assert shape is not None, "keep() has seen to it"
        return shape

    def numbers(self, *shape: int) -> Array:
        low = 0.25 if self.positive else -1.0
        array = self.random.uniform(low, 1.0, shape).astype(self.type.dtype)
        array.flags.writeable = False  # nobody may change a weight or an input in place
        return array

    def constant(self, *shape: int) -> Operand:
        return self.b.constant(self.numbers(*shape))

    def image(self) -> Operand:
        return self.one_of(self.images)

    def matrix(self) -> Operand:
        return self.one_of(self.matrices)

    def image_or_matrix(self) -> Operand:
        return self.one_of([*self.matrices, *self.images])

    def any(self) -> Operand:
        return self.one_of([*self.others, *self.matrices, *self.images])

    def one_of(self, operands: Sequence[Operand]) -> Operand:
        """The last one that was made if it is among them: what follows can fold into it."""
        if self.last in operands and self.pick(1, 1, 0):
            return self.last
        return self.draw(st.sampled_from(operands))

    def keep(self, operand: Operand) -> None:
        self.last = operand
        shape = operand.type.substitute(self.sizes).static_shape
        if shape is None or operand.type.element_type is not self.type:
            return
        rank = len(shape)
        (self.images if rank == 4 else self.matrices if rank == 2 else self.others).append(operand)

    def example(self) -> Example:
        made = [*self.images, *self.matrices, *self.others]
        last = self.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        for i, operand in enumerate([self.last, *last]):
            self.b.output(f"y{i}", operand)
        return Example(self.b.build(), self.inputs, self.positive)


def _convolution(g: _Growing) -> None:
    x = g.image()
    channels = g.sizes_of(x)[1]
    group = channels if g.flip() else 1
    out = group * g.pick(1, 2)
    bias = g.constant(out) if g.flip() else None
    fuse = Fuse.RELU if g.pick(0, 0, 1) else None
    weights = g.constant(out, channels // group, 1, 1)
    g.keep(g.b.add(Conv2D, x, weights, bias, group=group, fuse_code=fuse))


def _transposed_convolution(g: _Growing) -> None:
    x = g.image()
    channels = g.sizes_of(x)[1]
    group = channels if g.flip() else 1
    per_group = g.pick(1, 2)
    weights = g.constant(channels, per_group, 1, 2)
    bias = g.constant(group * per_group) if g.flip() else None
    g.keep(g.b.add(Conv2DTranspose, x, weights, bias, group=group))


def _normalization(g: _Growing) -> None:
    x = g.image_or_matrix()
    channels = g.sizes_of(x)[1]
    scale, bias, mean = (g.numbers(channels) for _ in range(3))
    variance = np.abs(g.numbers(channels)) + np.asarray(0.5, g.type.dtype)
    mean = -mean if g.positive else mean
    g.keep(g.b.add(BatchNormalization, x, scale, bias, mean, variance))


def _addition(g: _Growing) -> None:
    x = g.image_or_matrix()
    shape = g.sizes_of(x)
    channels = (shape[1],) + (1,) * (len(shape) - 2)
    options = [(), (1,), channels, (1, *channels), (shape[-1],), shape, (1, *shape)]
    addend = g.constant(*g.draw(st.sampled_from(options)))
    pair = (x, addend) if g.flip() else (addend, x)
    g.keep(g.b.add(Add, *pair, fuse_code=Fuse.RELU if g.pick(0, 0, 1) else None))


def _sum_of_two(g: _Growing) -> None:
    x = g.any()
    alike = [o for o in [*g.images, *g.matrices, *g.others] if g.sizes_of(o) == g.sizes_of(x)]
    other = g.draw(st.sampled_from(alike))
    g.keep(g.b.add(Add if g.flip() else Mul, x, other))


def _product(g: _Growing) -> None:
    x = g.matrix()
    size, out = g.sizes_of(x)[1], g.pick(1, 3)
    if g.flip():
        weights = g.constant(out, size)
        g.keep(g.b.add(FullyConnected, x, weights, g.constant(out) if g.flip() else None))
    elif g.flip():
        g.keep(g.b.add(MatMul, x, g.constant(out, size), transpose_y=True))
    else:
        g.keep(g.b.add(MatMul, x, g.constant(size, out)))


def _activation(g: _Growing) -> None:
    g.keep(g.b.add(g.draw(st.sampled_from([Relu, Sigmoid, HardSwish])), g.any()))


def _transposition(g: _Growing) -> None:
    x = g.any()
    perm = g.draw(st.permutations(range(len(g.sizes_of(x)))))
    if g.flip():
        perm = [(axis + 2) % len(perm) for axis in range(len(perm))]
    if g.flip():
        perm = [axis - len(perm) for axis in perm]
    g.keep(g.b.add(Transpose, x, perm))


def _reshaping(g: _Growing) -> None:
    x = g.any()
    sizes = g.sizes_of(x)
    flat = int(np.prod(sizes))
    options: list[tuple[int, ...]] = [sizes, (-1,), (flat, 1), (1, 1, flat, 1)]
    if sizes:
        options += [(0, *sizes[1:]), (*sizes[:-1], -1)]
    shape = g.draw(st.sampled_from(options))
    if g.flip():
        g.keep(g.b.add(Reshape, x, shape))
    else:
        g.keep(g.b.add(Reshape, x, np.array(shape, np.int64)))


def _reshaping_to_a_computed_shape(g: _Growing) -> None:
    x = g.any()
    g.keep(g.b.add(Reshape, g.b.add(Relu, x), g.b.add(ShapeOf, x)))


def _layout(g: _Growing) -> None:
    x = g.any()
    sizes = g.sizes_of(x)
    rank = len(sizes)
    kind = g.pick(0, 1, 2, 3, 4, 5)
    if kind == 0 and rank:
        g.keep(g.b.add(Flatten, x, start_axis=g.draw(st.integers(0, rank - 1))))
    elif kind == 1 and rank < 5:
        g.keep(g.b.add(Unsqueeze, x, (g.draw(st.integers(-rank - 1, rank)),)))
    elif kind == 2 and 1 in sizes:
        g.keep(g.b.add(Squeeze, x, [axis for axis, size in enumerate(sizes) if size == 1]))
    elif kind == 3:
        g.keep(g.b.add(Expand, x, sizes if g.flip() else (1,) * rank))
    elif kind == 4 and rank:
        start, step = g.pick(0, 0, -2), g.pick(1, 1, -1)
        ends = (2**31 - 1,) if step > 0 else (-(2**31),)
        start = start if step > 0 else -1
        g.keep(g.b.add(Slice, x, (rank - 1,), (start,), ends, (step,)))
    elif kind == 5 and rank and sizes[0] > 1:
        for part in g.b.add_all(Split, x, 0, (1, sizes[0] - 1)):
            g.keep(part)


def _identity(g: _Growing) -> None:
    x = g.any()
    kind = g.pick(0, 1, 2, 3)
    if kind == 0:
        g.keep(g.b.add(Assign, x))
    elif kind == 1:
        g.keep(g.b.add(Cast, x, g.type))
    elif kind == 2:
        g.keep(g.b.add(Cast, g.b.add(Cast, x, ElementType.INT32), g.type))
    elif x.type.shape:
        g.keep(g.b.add(Concat, [x] * g.pick(1, 2), 0))


def _constant_part(g: _Growing) -> None:
    a, b = g.constant(2, 3), g.constant(2, 3)
    g.keep(g.b.add(Transpose, g.b.add(Add, a, b), (1, 0)))


_FOLDING = (_normalization, _addition)
_STEPS: Sequence[Sequence[Callable[[_Growing], None]]] = (
    (_convolution,),
    (_convolution, *_FOLDING),
    (_transposed_convolution, *_FOLDING),
    (_product, *_FOLDING),
    (_product, _addition),
    (_normalization,),
    (_addition,),
    (_activation,),
    (_sum_of_two,),
    (_transposition, _transposition),
    (_reshaping, _reshaping),
    (_reshaping_to_a_computed_shape,),
    (_layout,),
    (_identity,),
    (_constant_part,),
)


def at_once(program: str, *arguments: str, count: int = 8) -> list[str]:
    """What Python processes print that run a program at once; none of them may fail.

    The program must wait for a line of input before it does what is to happen at once.
    """
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
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
