"""Random models for property tests, with inputs to run them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from crosschip.ir import (
    Array,
    Builder,
    Dim,
    ElementType,
    Model,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
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
from crosschip.ops.standard.quantization import Reinterpret
from crosschip.ops.standard.slicing import Slice


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


@st.composite
def examples(draw: st.DrawFn, *, quantized: bool = False) -> Example:
    """Models of a few operations: layers, what folds into them, and what does nothing.

    Some sizes are 0, some operations make several outputs, some have several readers or none.

    Args:
        draw: draws.
        quantized: whether there is a part that computes with quantized tensors, beside the other.
    """
    growing = Growing(draw)
    steps = [*STEPS, *QUANTIZED_STEPS] if quantized else STEPS
    for _ in range(draw(st.integers(0, 8))):
        for grow in draw(st.sampled_from(steps)):
            grow(growing)
    return growing.example()


class Growing:
    """A model in the making. What is drawn shrinks: less of everything is simpler."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 999)))
        self.positive = draw(st.booleans())
        self.type = ElementType.FLOAT32 if self.positive else ElementType.FLOAT64
        self.b = Builder("random")
        self.inputs: dict[str, Array] = {}
        self.sizes: dict[str, Dim] = {}
        self.images = [self.input("image", self.pick(1, 2, 0), self.pick(1, 2, 4), 3, 2)]
        self.matrices = [self.input("matrix", self.pick(1, 3, 0), self.pick(1, 2, 4))]
        self.others: list[Operand] = []
        self.integers: list[Operand] = []
        self.reals: list[Operand] = []
        self.last: Operand = self.images[0]

    def pick(self, *options: int) -> int:
        return self.draw(st.sampled_from(options))

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def input(self, name: str, batch: int, *shape: int) -> Operand:
        """An input, for which the first size may be left open."""
        return self.declare(name, self.numbers(batch, *shape))

    def declare(self, name: str, array: Array, quantization: Quantization | None = None) -> Operand:
        """An input of which the elements are given; its first size may be left open."""
        self.inputs[name] = array
        first: Dim = array.shape[0]
        if self.flip() and not (quantization and quantization.axis == 0):
            first = symbol(f"{name}s")
            self.sizes[f"{name}s"] = array.shape[0]
        type_ = ElementType.of(array.dtype)
        return self.b.input(name, TensorType(type_, (first, *array.shape[1:]), quantization))

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
        """An image of some pixels, in a batch of any size."""
        return self.one_of([image for image in self.images if 0 not in self.sizes_of(image)[1:]])

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
        made = [*self.images, *self.matrices, *self.others, *self.integers, *self.reals]
        last = self.draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        for i, operand in enumerate([self.last, *last]):
            self.b.output(f"y{i}", operand)
        return Example(self.b.build(), self.inputs, self.positive)


def _convolution(g: Growing) -> None:
    x = g.image()
    channels = g.sizes_of(x)[1]
    group = channels if g.flip() else 1
    out = group * g.pick(1, 2)
    bias = g.constant(out) if g.flip() else None
    fuse = Fuse.RELU if g.pick(0, 0, 1) else None
    weights = g.constant(out, channels // group, 1, 1)
    g.keep(g.b.add(Conv2D, x, weights, bias, group=group, fuse_code=fuse))


def _transposed_convolution(g: Growing) -> None:
    x = g.image()
    channels = g.sizes_of(x)[1]
    group = channels if g.flip() else 1
    per_group = g.pick(1, 2)
    weights = g.constant(channels, per_group, 1, 2)
    bias = g.constant(group * per_group) if g.flip() else None
    g.keep(g.b.add(Conv2DTranspose, x, weights, bias, group=group))


def _normalization(g: Growing) -> None:
    x = g.image_or_matrix()
    channels = g.sizes_of(x)[1]
    scale, bias, mean = (g.numbers(channels) for _ in range(3))
    variance = np.abs(g.numbers(channels)) + np.asarray(0.5, g.type.dtype)
    mean = -mean if g.positive else mean
    g.keep(g.b.add(BatchNormalization, x, scale, bias, mean, variance))


def _addition(g: Growing) -> None:
    x = g.image_or_matrix()
    shape = g.sizes_of(x)
    channels = (shape[1],) + (1,) * (len(shape) - 2)
    options = [(), (1,), channels, (1, *channels), (shape[-1],), shape, (1, *shape)]
    addend = g.constant(*g.draw(st.sampled_from(options)))
    pair = (x, addend) if g.flip() else (addend, x)
    g.keep(g.b.add(Add, *pair, fuse_code=Fuse.RELU if g.pick(0, 0, 1) else None))


def _sum_of_two(g: Growing) -> None:
    x = g.any()
    alike = [o for o in [*g.images, *g.matrices, *g.others] if g.sizes_of(o) == g.sizes_of(x)]
    other = g.draw(st.sampled_from(alike))
    g.keep(g.b.add(Add if g.flip() else Mul, x, other))


def _product(g: Growing) -> None:
    x = g.matrix()
    size, out = g.sizes_of(x)[1], g.pick(1, 3)
    if g.flip():
        weights = g.constant(out, size)
        g.keep(g.b.add(FullyConnected, x, weights, g.constant(out) if g.flip() else None))
    elif g.flip():
        g.keep(g.b.add(MatMul, x, g.constant(out, size), transpose_y=True))
    else:
        g.keep(g.b.add(MatMul, x, g.constant(size, out)))


def _activation(g: Growing) -> None:
    g.keep(g.b.add(g.draw(st.sampled_from([Relu, Sigmoid, HardSwish])), g.any()))


def _transposition(g: Growing) -> None:
    x = g.any()
    perm = g.draw(st.permutations(range(len(g.sizes_of(x)))))
    if g.flip():
        perm = [(axis + 2) % len(perm) for axis in range(len(perm))]
    if g.flip():
        perm = [axis - len(perm) for axis in perm]
    g.keep(g.b.add(Transpose, x, perm))


def _reshaping(g: Growing) -> None:
    x = g.any()
    sizes = g.sizes_of(x)
    flat = int(np.prod(sizes))
    options: list[tuple[int, ...]] = [sizes]
    if flat:  # a 0 in a shape stands for the input's size there
        options += [(-1,), (flat, 1), (1, 1, flat, 1)]
    if sizes and flat:
        options += [(0, *sizes[1:]), (*sizes[:-1], -1)]
    shape = g.draw(st.sampled_from(options))
    if g.flip():
        g.keep(g.b.add(Reshape, x, shape))
    else:
        g.keep(g.b.add(Reshape, x, np.array(shape, np.int64)))


def _reshaping_to_a_computed_shape(g: Growing) -> None:
    x = g.any()
    g.keep(g.b.add(Reshape, g.b.add(Relu, x), g.b.add(ShapeOf, x)))


def _layout(g: Growing) -> None:
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


def _identity(g: Growing) -> None:
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


def _constant_part(g: Growing) -> None:
    a, b = g.constant(2, 3), g.constant(2, 3)
    g.keep(g.b.add(Transpose, g.b.add(Add, a, b), (1, 0)))


FOLDING = (_normalization, _addition)
Steps = Sequence[Sequence[Callable[[Growing], None]]]
STEPS: Steps = (
    (_convolution,),
    (_convolution, *FOLDING),
    (_transposed_convolution, *FOLDING),
    (_product, *FOLDING),
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


def _integers(g: Growing) -> Operand:
    """A quantized operand; the first one is an input."""
    if g.integers:
        return g.one_of(g.integers)
    shape = g.draw(st.sampled_from([(1, 2, 3, 2), (2, 2), (2, 2, 1, 3), (0, 2, 3, 1)]))
    type_ = g.draw(st.sampled_from([ElementType.INT8, ElementType.UINT8]))
    axis = g.draw(st.sampled_from([None, None, 0, 1]))
    signed = type_ is ElementType.INT8
    quantization = (
        _quantization(g, signed=signed) if axis is None else _by_index(g, axis, shape[axis])
    )
    operand = g.declare("integers", _drawn(g, type_, shape), quantization)
    g.integers.append(operand)
    return operand


def _drawn(g: Growing, type_: ElementType, shape: tuple[int, ...]) -> Array:
    info = np.iinfo(type_.dtype)
    array = g.random.integers(info.min, info.max, shape, type_.dtype, endpoint=True)
    array.flags.writeable = False
    return array


def _quantization(g: Growing, *, signed: bool = False) -> Quantization:
    zero_point = g.pick(0, 3, -7) if signed else g.pick(0, 3, 17)
    return Quantization((g.draw(st.sampled_from([0.5, 0.1, 0.7, 1 / 256])),), (zero_point,))


def _by_index(g: Growing, axis: int, size: int) -> Quantization:
    """A scale for each index of an axis, if it has any."""
    if not size:
        return _quantization(g)
    scales = tuple(g.random.choice([0.5, 0.25, 0.1, 0.7], size).tolist())
    return Quantization(scales, (0,) if g.flip() else (1,), axis)


def _declared(g: Growing) -> Quantization | None:
    """The quantization that an output declares, if it does."""
    return _quantization(g) if g.flip() else None


def _weights(g: Growing, *shape: int) -> Operand:
    """Constant weights: quantized, for each output channel or as a whole."""
    quantization = _by_index(g, 0, shape[0]) if g.flip() else _quantization(g, signed=True)
    return g.b.constant(_drawn(g, ElementType.INT8, shape), quantization=quantization)


def _plain(g: Growing, *shape: int) -> Operand:
    """A constant of plain reals."""
    return g.b.constant(g.random.uniform(-1.0, 1.0, shape).astype(np.float32))


def _keep_quantized(g: Growing, *operands: Operand) -> None:
    for operand in operands:
        g.last = operand
        if operand.type.substitute(g.sizes).static_shape is not None:
            (g.integers if operand.type.quantization else g.reals).append(operand)


def _move_of_integers(g: Growing) -> None:
    """Add what moves integers as they are, or rounds them to others."""
    x = _integers(g)
    sizes = g.sizes_of(x)
    rank, flat = len(sizes), int(np.prod(sizes))
    q = _declared(g)
    kind = g.pick(0, 1, 2, 3, 4, 5, 6, 7)
    if kind == 0:
        made = g.b.add(Assign, x, quantization=q)
    elif kind == 1:
        perm = range(rank) if g.flip() else g.draw(st.permutations(range(rank)))
        made = g.b.add(Transpose, x, tuple(perm), quantization=q)
    elif kind == 2:
        shape = g.draw(st.sampled_from([sizes, (flat,), (1, *sizes)] if flat else [sizes]))
        made = g.b.add(Reshape, x, shape, quantization=q)
    elif kind == 3:
        made = g.b.add(Concat, [x] * g.pick(1, 2), 0, quantization=q)
    elif kind == 4:
        first = g.pick(0, 0, 1)
        made = g.b.add(Slice, x, (rank - 1,), (first,), (2**31 - 1,), quantization=q)
    elif kind == 5:
        made = g.b.add(Expand, x, sizes if g.flip() else (2, *sizes), quantization=q)
    elif kind == 6:
        made = g.b.add(Flatten, x, g.pick(rank - 1, 0), rank - 1, quantization=q)
    else:
        parts = (0, sizes[-1]) if g.flip() else (sizes[-1], 0)
        each = (q, _declared(g))
        _keep_quantized(g, *g.b.add_all(Split, x, rank - 1, parts, quantization=each))
        return
    _keep_quantized(g, made)


def _there_and_back(g: Growing) -> None:
    x = _integers(g)
    rank = len(g.sizes_of(x))
    perm = g.draw(st.permutations(range(rank)))
    there = g.b.add(Transpose, x, perm, quantization=_declared(g))
    if there.type.quantization is None:
        return
    back = g.b.add(Transpose, there, np.argsort(perm), quantization=_declared(g))
    _keep_quantized(g, there, back)


def _other_meanings(g: Growing) -> None:
    """Let integers stand for themselves, for other reals, or for the same again."""
    x = _integers(g)
    own = x.type.quantization
    made = g.b.add(Reinterpret, x, bare=True) if g.flip() else x
    for q in (_declared(g), own if own and own.axis is None and g.flip() else _quantization(g)):
        if q is not None:
            zero_point = tuple(map(float, q.zero_point))
            made = g.b.add(Reinterpret, made, 0, q.scale, zero_point)
    _keep_quantized(g, made)


def _layer_of_integers(g: Growing) -> None:
    x = _integers(g)
    sizes, q = g.sizes_of(x), _declared(g)
    bias = None
    if len(sizes) == 4 and 0 not in sizes[1:]:
        filters = _weights(g, g.pick(2, 1), sizes[1], 1, 1)
        if g.pick(0, 0, 1):
            bias = _plain(g, g.sizes_of(filters)[0])
        made = g.b.add(Conv2D, x, filters, bias, quantization=q)
    elif len(sizes) == 2 and g.flip():
        made = g.b.add(FullyConnected, x, _weights(g, g.pick(2, 1), sizes[1]), quantization=q)
    elif len(sizes) == 2:
        weights = _plain(g, sizes[1], 2) if g.flip() else _weights(g, sizes[1], 2)
        made = g.b.add(MatMul, x, weights, quantization=q)
    else:
        made = g.b.add(Relu, x, quantization=q)
    _keep_quantized(g, made)


def _layer_of_their_reals(g: Growing) -> None:
    """A plain layer, of what quantized operands stand for."""
    real = g.one_of(g.reals) if g.reals and g.flip() else g.b.add(Relu, _integers(g))
    sizes = g.sizes_of(real)
    if len(sizes) == 4 and 0 not in sizes[1:]:
        real = g.b.add(Conv2D, real, _plain(g, g.pick(2, 1), sizes[1], 1, 1))
    elif len(sizes) == 2:
        real = g.b.add(MatMul, real, _plain(g, sizes[1], 2))
    _keep_quantized(g, real)


def _addition_to_integers(g: Growing) -> None:
    x = g.one_of([_integers(g), *g.integers, *g.reals])
    sizes = g.sizes_of(x)
    if len(sizes) < 2:
        return
    shape = g.draw(st.sampled_from([(sizes[1],) + (1,) * (len(sizes) - 2), ()]))
    addend = _weights(g, *shape) if shape and shape[0] and g.flip() else _plain(g, *shape)
    either = x.type.quantization or addend.type.quantization
    _keep_quantized(g, g.b.add(Add, x, addend, quantization=_declared(g) if either else None))


def _normalization_of_integers(g: Growing) -> None:
    x = g.one_of([_integers(g), *g.integers, *g.reals])
    sizes = g.sizes_of(x)
    if len(sizes) < 2:
        return
    scale, bias, mean = (_plain(g, sizes[1]) for _ in range(3))
    variance = g.b.constant(np.full(sizes[1], 0.5, np.float32))
    q = _declared(g) if x.type.quantization else None
    _keep_quantized(g, g.b.add(BatchNormalization, x, scale, bias, mean, variance, quantization=q))


def _sum_of_integers(g: Growing) -> None:
    x = _integers(g)
    alike = [o for o in g.integers if g.sizes_of(o) == g.sizes_of(x)]
    other = g.draw(st.sampled_from(alike))
    if other.type.element_type is x.type.element_type:
        _keep_quantized(g, g.b.add(Add, x, other, quantization=_declared(g)))


QUANTIZED_STEPS: Steps = (
    (_move_of_integers,),
    (_other_meanings, _move_of_integers),
    (_move_of_integers, _move_of_integers),
    (_there_and_back,),
    (_layer_of_integers, _addition_to_integers),
    (_layer_of_integers, _normalization_of_integers),
    (_layer_of_their_reals, _addition_to_integers),
    (_layer_of_their_reals, _normalization_of_integers),
    (_sum_of_integers,),
)
