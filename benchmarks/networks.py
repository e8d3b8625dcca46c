"""Two networks with random weights, each written twice: for crosschip, and by hand for JAX.

A third one, a small BERT with a class at its end, is written for crosschip only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType
from crosschip.ops.standard.activation import Gelu, Relu, Softmax
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import LayerNormalization
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.reduction import ReduceMean

_EXACT = lax.Precision.HIGHEST
_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
_WIDTH, _HEADS, _WORDS = 768, 12, 128
_LAYERS = 6
_OF_A_LAYER = 16
"""The number of weights that a layer of BERT has."""
_SMALL_WIDTH, _SMALL_HEADS, _CLASSES = 256, 4, 8


@dataclass(frozen=True, slots=True)
class Network:
    """A network as both have it.

    Attributes:
        name: what it is called.
        model: for crosschip.
        by_hand: for JAX, a function of the weights and an input.
        weights: of `by_hand`, in its own layout.
        input: an input of the model; `by_hand` takes it as it is.
    """

    name: str
    model: Model
    by_hand: Callable[[Sequence[Any], Any], Any]
    weights: Sequence[Array]
    input: Array


def networks(batch: int) -> Iterator[Network]:
    """ResNet50, whose normalizations are folded into its convolutions, and a BERT of 6 layers."""
    random = np.random.default_rng(0)
    weights = [_random(random, shape) for shape in _resnet_shapes()]
    image = random.normal(size=(batch, 3, 224, 224)).astype(np.float32)
    turned = [w.transpose(2, 3, 1, 0).copy() if w.ndim == 4 else w for w in weights]
    yield Network("ResNet50", _resnet(weights, image.shape), _resnet_by_hand, turned, image)
    weights = [_random(random, shape) for shape in _bert_shapes(_WIDTH)]
    words = random.normal(size=(batch, _WORDS, _WIDTH)).astype(np.float32)
    yield Network(
        "BERT, 6 layers", bert(weights, words.shape, _HEADS), _bert_by_hand, weights, words
    )


def small_bert(words: int) -> Model:
    """A BERT of 6 layers, 256 wide, that gives one of 8 classes to words, which are vectors."""
    random = np.random.default_rng(0)
    shapes = [*_bert_shapes(_SMALL_WIDTH), (_SMALL_WIDTH, _CLASSES), (_CLASSES,)]
    # The factors of a normalization are near 1, as those of trained networks are.
    factors = {place + offset for place in range(0, 96, _OF_A_LAYER) for offset in (8, 14)}
    weights = [
        _random(random, shape) + np.float32(place in factors) for place, shape in enumerate(shapes)
    ]
    return bert(weights, (1, words, _SMALL_WIDTH), _SMALL_HEADS)


def _random(random: np.random.Generator, shape: Sequence[int]) -> Array:
    scale = (2 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.1
    return (random.normal(size=shape) * scale).astype(np.float32)


def _units() -> Iterator[tuple[int, int, int, bool]]:
    """Of each residual unit: input channels, width, stride, whether its shortcut is projected."""
    into = 64
    for stage, (width, count) in enumerate(_STAGES):
        for unit in range(count):
            yield into, width, 2 if unit == 0 and stage else 1, unit == 0
            into = 4 * width


def _resnet_shapes() -> Iterator[Sequence[int]]:
    """Filters and biases, in the order in which both functions take them."""
    yield from ((64, 3, 7, 7), (64,))
    for into, width, _, projected in _units():
        if projected:
            yield from ((4 * width, into, 1, 1), (4 * width,))
        yield from ((width, into, 1, 1), (width,), (width, width, 3, 3), (width,))
        yield from ((4 * width, width, 1, 1), (4 * width,))
    yield from ((1000, 2048), (1000,))


def _resnet(weights: Sequence[Array], shape: Sequence[int]) -> Model:
    b, taken = Builder("resnet50"), iter(weights)

    def conv(x: Operand, pad: int, stride: int) -> Operand:
        return b.add(Conv2D, x, next(taken), next(taken), pads=(pad,) * 4, strides=(stride, stride))

    x = b.input("image", TensorType(ElementType.FLOAT32, tuple(shape)))
    x = b.add(Relu, conv(x, 3, 2))
    x = b.add(MaxPool2D, x, kernel_shape=(3, 3), pads=(1, 1, 1, 1), strides=(2, 2))
    for _, _, stride, projected in _units():
        shortcut = conv(x, 0, stride) if projected else x
        x = b.add(Relu, conv(x, 0, 1))
        x = b.add(Relu, conv(x, 1, stride))
        x = b.add(Relu, b.add(Add, conv(x, 0, 1), shortcut))
    pooled = b.add(ReduceMean, x, (2, 3), False)
    b.output("scores", b.add(FullyConnected, pooled, next(taken), next(taken)))
    return b.build()


def _resnet_by_hand(weights: Sequence[Any], image: Any) -> Any:
    taken = iter(weights)

    def conv(x: Any, pad: int, stride: int) -> Any:
        made = lax.conv_general_dilated(
            x,
            next(taken),
            (stride, stride),
            [(pad, pad), (pad, pad)],
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            precision=_EXACT,
        )
        return made + next(taken)

    x = jax.nn.relu(conv(image.transpose(0, 2, 3, 1), 3, 2))
    frame = [(0, 0), (1, 1), (1, 1), (0, 0)]
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), frame)
    for _, _, stride, projected in _units():
        shortcut = conv(x, 0, stride) if projected else x
        x = jax.nn.relu(conv(x, 0, 1))
        x = jax.nn.relu(conv(x, 1, stride))
        x = jax.nn.relu(conv(x, 0, 1) + shortcut)
    return jnp.matmul(x.mean((1, 2)), next(taken).T, precision=_EXACT) + next(taken)


def _bert_shapes(width: int) -> Iterator[Sequence[int]]:
    for _ in range(_LAYERS):
        for _ in range(4):
            yield from ((width, width), (width,))
        yield from ((width,), (width,), (width, 4 * width), (4 * width,))
        yield from ((4 * width, width), (width,), (width,), (width,))


def bert(weights: Sequence[Array], shape: Sequence[int], heads: int) -> Model:
    """A BERT without its table of words.

    Args:
        weights: sixteen a layer, and two of the classes that the first word gives, if any.
        shape: of the words: how many sentences, words of each, and numbers of a word.
        heads: how many parts a word's numbers have where words meet.
    """
    b, taken, width = Builder("bert"), iter(weights), shape[-1]

    def dense(x: Operand) -> Operand:
        return b.add(Add, b.add(MatMul, x, b.constant(next(taken))), b.constant(next(taken)))

    def parted(x: Operand) -> Operand:
        parts = b.add(Reshape, x, (0, 0, heads, width // heads))
        return b.add(Transpose, parts, (0, 2, 1, 3))

    def normal(x: Operand) -> Operand:
        return b.add(LayerNormalization, x, b.constant(next(taken)), b.constant(next(taken)))

    x = b.input("words", TensorType(ElementType.FLOAT32, tuple(shape)))
    for _ in range(len(weights) // _OF_A_LAYER):
        query, key, value = (parted(dense(x)) for _ in range(3))
        marks = b.add(Mul, b.add(MatMul, query, key, transpose_y=True), (width // heads) ** -0.5)
        mixed = b.add(MatMul, b.add(Softmax, marks, -1), value)
        mixed = b.add(Reshape, b.add(Transpose, mixed, (0, 2, 1, 3)), (0, 0, width))
        x = normal(b.add(Add, x, dense(mixed)))
        x = normal(b.add(Add, x, dense(b.add(Gelu, dense(x)))))
    if len(weights) % _OF_A_LAYER:
        b.output("classes", dense(b.add(Gather, x, np.array(0), 1)))
    else:
        b.output("words", x)
    return b.build()


def _bert_by_hand(weights: Sequence[Any], words: Any) -> Any:
    taken = iter(weights)

    def dense(x: Any) -> Any:
        return jnp.matmul(x, next(taken), precision=_EXACT) + next(taken)

    def heads(x: Any) -> Any:
        return x.reshape(*x.shape[:2], _HEADS, _WIDTH // _HEADS).transpose(0, 2, 1, 3)

    def normal(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        scale = lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
        return centred * scale * next(taken) + next(taken)

    x = words
    for _ in range(_LAYERS):
        query, key, value = (heads(dense(x)) for _ in range(3))
        marks = jnp.matmul(query, key.swapaxes(-1, -2), precision=_EXACT)
        shares = jax.nn.softmax(marks * (_WIDTH // _HEADS) ** -0.5, -1)
        mixed = jnp.matmul(shares, value, precision=_EXACT)
        mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
        x = normal(x + dense(mixed))
        x = normal(x + dense(jax.nn.gelu(dense(x), approximate=False)))
    return x
