"""Random numbers of the counter-based generators that LiteRT has: Philox and Threefry.

All words are 32 bits in int64, which all engines multiply. The generators of RANDOM_UNIFORM and its
like count in a state, so each run of a session draws other numbers, the same as LiteRT's for the
same seeds. Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import RngAlgorithm
from crosschip.flatbuffer.schemas.tflite.options import RandomOptions
from crosschip.flatbuffer.schemas.tflite.stablehlo_options import StablehloRngBitGeneratorOptions
from crosschip.importers.facts import size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.importers.tflite.variable_uses import generator_key
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops.standard.arithmetic import Add, Div, Max, Mul, Sub
from crosschip.ops.standard.comparison import GreaterEqual, Less
from crosschip.ops.standard.conversion import BitCast, Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Stack
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import (
    BitShift,
    BitwiseAnd,
    BitwiseXor,
    ShiftDirection,
    Where,
)
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceSum
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Abs, Cos, Exp, Log, Sin, Sqrt

_MASK = 2**32 - 1
_PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@imports("RANDOM_UNIFORM")
def random_uniform(node: Node) -> Operand:
    """Import numbers from 0 to 1, without 1."""
    shape = _shape(node)
    words = _draw(node, math.prod(shape), 4)
    numbers = _fraction(node, _interleave(node, words, math.prod(shape)))
    return node.add(Reshape, numbers, shape)


@imports("RANDOM_STANDARD_NORMAL")
def random_standard_normal(node: Node) -> Operand:
    """Import numbers of the standard normal distribution, in pairs by Box and Muller's formula."""
    shape = _shape(node)
    words = _draw(node, math.prod(shape), 4)
    numbers = []
    for first, second in (words[:2], words[2:]):
        positive = node.add(Max, _fraction(node, first), np.float32(1e-7))
        radius = node.add(Sqrt, node.add(Mul, node.add(Log, positive), np.float32(-2)))
        angle = node.add(Mul, _fraction(node, second), np.float32(2 * math.pi))
        numbers += [node.add(Mul, node.add(each, angle), radius) for each in (Sin, Cos)]
    return node.add(Reshape, _interleave(node, numbers, math.prod(shape)), shape)


@imports("MULTINOMIAL")
def multinomial(node: Node) -> Operand:
    """Import samples of the classes of rows of logits, by the inverse of their distribution."""
    (batch, _), count = static_shape_of(node[0]), int(node.value(1, "the number of samples").item())
    reserved = batch * (-(-count // 4) * 4) * 2 * 256
    words = _draw(node, 2 * batch * count, 4, reserved)
    fractions = []
    for high, low in (words[:2], words[2:]):
        upper = node.add(Mul, node.add(BitwiseAnd, high, _word(2**20 - 1)), _word(2**32))
        mantissa = node.add(Cast, node.add(Add, upper, low), ElementType.FLOAT64)
        fractions.append(node.add(Mul, mantissa, np.float64(2.0**-52)))
    uniform = node.add(Reshape, _interleave(node, fractions, batch * count), (batch, count))
    logits = node.add(Cast, node[0], ElementType.FLOAT64)
    is_finite = node.add(Less, node.add(Abs, logits), np.float64(np.inf))
    lowest = np.float64(np.finfo(np.float32).min)
    largest = node.add(ReduceMax, node.add(Where, is_finite, logits, lowest), (1,), True)
    odds = node.add(Exp, node.add(Sub, logits, largest))
    odds = node.add(Where, is_finite, odds, np.float64(0))
    cumulative = node.add(CumSum, odds, axis=1)
    target = node.add(Mul, uniform, node.add(ReduceSum, odds, (1,), True))
    is_passed = node.add(
        GreaterEqual,
        node.add(Unsqueeze, target, axes=(2,)),
        node.add(Unsqueeze, cumulative, axes=(1,)),
    )
    passed = node.add(Cast, is_passed, ElementType.INT32)
    samples = node.add(ReduceSum, passed, (2,), False)
    return node.add(Cast, samples, node.output().element_type)


@imports("STABLEHLO_RNG_BIT_GENERATOR")
def rng_bit_generator(node: Node) -> tuple[Operand, Operand]:
    """Import the next state of a generator, and random bits."""
    state, output = node[0], node.output(1)
    algorithm = RngAlgorithm(node.options(StablehloRngBitGeneratorOptions).algorithm)
    is_threefry = algorithm is RngAlgorithm.THREEFRY
    length, block = size_of(state, 0), 2 if is_threefry else 4
    if length not in ((2,) if is_threefry else (2, 3)):
        raise ModelError(f"a state of {length} numbers for {algorithm.name}")
    is_long = output.element_type in (ElementType.INT64, ElementType.UINT64)
    shape = output.static_shape
    if shape is None:
        raise UnsupportedError("a number of random bits that is not known")
    count = math.prod(shape) * (2 if is_long else 1)
    blocks = -(-count // block)
    spend(bytes=8 * block * blocks)
    entries = [node.add(Slice, state, (0,), (n,), (n + 1,)) for n in range(length)]
    counter = node.add(Add, entries[1], np.arange(blocks, dtype=np.uint64))
    low, high = _halves(node, counter)
    key = _halves(node, entries[0])
    if is_threefry:
        words = _threefry(node, [low, high], key)
    else:
        words = _philox(node, [low, high, *_halves(node, entries[2 if length == 3 else 0])], key)
    entries[1] = node.add(Add, entries[1], np.array([blocks], np.uint64))
    following = node.add(Reshape, node.add(Stack, parts=entries, axis=0), (length,))
    bits = _interleave(node, words, count)
    if is_long:
        pairs = node.add(Reshape, bits, (-1, 2))
        first, second = (node.add(Gather, pairs, np.array(n), axis=1) for n in (0, 1))
        bits = node.add(Add, first, node.add(Mul, second, _word(2**32)))
        bits = node.add(BitCast, bits, output.element_type)
    else:
        # Of the numbers from 2^31 on, the int32 with the same bits.
        half = 2**31 if output.element_type is ElementType.INT32 else 0
        bits = node.add(Sub, node.add(BitwiseXor, bits, _word(half)), _word(half))
        bits = node.add(Cast, bits, output.element_type)
    return following, node.add(Reshape, bits, shape)


def _word(value: int) -> Array:
    return np.array(value, np.int64)


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(int(size) for size in node.value(0, "the shape of the random numbers").ravel())


def _draw(node: Node, count: int, block: int, reserved: int = 0) -> list[Operand]:
    """Return the four words of each block of random bits, for at least `count` words.

    Args:
        node: the operator, whose options have the seeds.
        count: the number of words.
        block: the number of words of a block.
        reserved: the blocks by which the next run is ahead, if not those that are drawn.
    """
    options, blocks = node.options(RandomOptions), -(-count // block)
    spend(bytes=8 * count)
    key = generator_key(node.subgraph.index, node.subgraph.name(node.output_indices[0]))
    start = node.subgraph.variables.advance(key, reserved or blocks)
    counter = node.add(Add, node.add(Reshape, start, (1,)), np.arange(blocks, dtype=np.int64))
    low = node.add(BitwiseAnd, counter, _word(_MASK))
    high = node.add(Div, counter, _word(2**32))
    # LiteRT keeps 32 bits of a seed, as a signed number.
    seeds = [
        node.constant(_word(((seed + 2**31) % 2**32 - 2**31) >> shift & _MASK))
        for seed in (options.seed, options.seed2)
        for shift in (0, 32)
    ]
    return _philox(node, [low, high, *seeds[2:]], seeds[:2])


def _halves(node: Node, number: Operand) -> list[Operand]:
    """Return the low and the high words of uint64 numbers."""
    low = node.add(BitwiseAnd, number, np.array(_MASK, np.uint64))
    shift = np.array(32, np.uint64)
    high = node.add(BitShift, number, shift, direction=ShiftDirection.RIGHT)
    return [node.add(Cast, each, ElementType.INT64) for each in (low, high)]


def _philox(node: Node, counter: Sequence[Operand], key: Sequence[Operand]) -> list[Operand]:
    """Return the words of Philox 4x32 after ten rounds."""
    words, key = list(counter), list(key)
    for _ in range(10):
        (high, low), (other_high, other_low) = (
            _product(node, word, factor)
            for word, factor in zip((words[0], words[2]), _PHILOX_FACTORS, strict=True)
        )
        words = [
            node.add(BitwiseXor, node.add(BitwiseXor, other_high, words[1]), key[0]),
            other_low,
            node.add(BitwiseXor, node.add(BitwiseXor, high, words[3]), key[1]),
            low,
        ]
        steps = zip(key, _PHILOX_KEY_STEPS, strict=True)
        key = [_sum(node, part, _word(step)) for part, step in steps]
    return words


def _threefry(node: Node, counter: Sequence[Operand], key: Sequence[Operand]) -> list[Operand]:
    """Return the words of Threefry 2x32 after 20 rounds."""
    parity = node.add(BitwiseXor, node.add(BitwiseXor, key[0], key[1]), _word(_THREEFRY_PARITY))
    keys = [*key, parity]
    first, second = (_sum(node, *pair) for pair in zip(counter, key, strict=True))
    for number in range(5):
        for rotation in _THREEFRY_ROTATIONS[number % 2]:
            first = _sum(node, first, second)
            shifted = node.add(Mul, second, _word(2**rotation))
            shifted = node.add(BitwiseAnd, shifted, _word(_MASK))
            rest = node.add(Div, second, _word(2 ** (32 - rotation)))
            second = node.add(BitwiseXor, node.add(Add, shifted, rest), first)
        first = _sum(node, first, keys[(number + 1) % 3])
        second = _sum(node, _sum(node, second, keys[(number + 2) % 3]), _word(number + 1))
    return [first, second]


def _sum(node: Node, word: Operand, other: Operand | Array) -> Operand:
    """Return the low 32 bits of a sum."""
    return node.add(BitwiseAnd, node.add(Add, word, other), _word(_MASK))


def _product(node: Node, word: Operand, factor: int) -> tuple[Operand, Operand]:
    """Return the high and the low word of a product, without numbers beyond 2^49."""
    half = _word(2**16)
    low = node.add(Mul, word, _word(factor & 0xFFFF))
    high = node.add(Mul, word, _word(factor >> 16))
    high = node.add(Add, high, node.add(Div, low, half))
    rest = node.add(BitwiseAnd, low, _word(0xFFFF))
    middle = node.add(Mul, node.add(BitwiseAnd, high, _word(0xFFFF)), half)
    return node.add(Div, high, half), node.add(Add, middle, rest)


def _fraction(node: Node, word: Operand) -> Operand:
    """Return the last 23 bits of words as fractions, float32."""
    mantissa = node.add(BitwiseAnd, word, _word(2**23 - 1))
    return node.add(Mul, node.add(Cast, mantissa, ElementType.FLOAT32), np.float32(2.0**-23))


def _interleave(node: Node, columns: Sequence[Operand], count: int) -> Operand:
    """Return the first elements of columns, row by row."""
    rows = node.add(Stack, parts=list(columns), axis=1)
    flat = node.add(Reshape, rows, (-1,))
    return node.add(Slice, flat, axes=(0,), starts=(0,), ends=(count,))
