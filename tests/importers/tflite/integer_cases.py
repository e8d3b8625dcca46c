"""Random cases of operators on integers, and of a few that only arrange elements."""

from __future__ import annotations

import numpy as np
from tests.importers.tflite.single_operator import Case, Draw, Tensor, cases, const, options

INTEGERS = (
    *("ADD_N", "BITWISE_XOR", "BROADCAST_ARGS", "BUCKETIZE", "DYNAMIC_UPDATE_SLICE", "RANK"),
    "RIGHT_SHIFT",
)
_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


@cases("BITWISE_XOR", "RIGHT_SHIFT")
def bitwise(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(_TYPES)
    shape = draw.shape()
    inputs = [draw.tensor(shape, dtype), Tensor(draw.integers(shape, dtype, 0, 7), dtype)]
    name = "BitwiseXor" if operator == "BITWISE_XOR" else "RightShift"
    return Case(operator, inputs, [Tensor(dtype=dtype)], options(name))


@cases("ADD_N")
def add_n(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(("float32", "int32"))
    shape = draw.shape()
    inputs = [draw.tensor(shape, dtype) for _ in range(draw.random.randint(2, 4))]
    return Case(operator, inputs, [Tensor(dtype=dtype)], options("AddN"))


@cases("RANK")
def rank(draw: Draw, operator: str) -> Case:
    inputs = [draw.tensor(draw.shape(), "float32")]
    return Case(operator, inputs, [Tensor(dtype="int32")], options("Rank"))


@cases("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(("float32", "int8", "int32", "int64", "bool"))
    shape = draw.shape()
    update = tuple(draw.random.randint(1, size) for size in shape)
    start = Tensor(draw.integers((len(shape),), "int32", -3, 6), "int32")
    inputs = [draw.tensor(shape, dtype), draw.tensor(update, dtype), start]
    return Case(operator, inputs, [Tensor(dtype=dtype)], options("DynamicUpdateSlice"))


@cases("BUCKETIZE")
def bucketize(draw: Draw, operator: str) -> Case:
    dtype = draw.random.choice(("float32", "int32"))
    boundaries = np.sort(draw.reals((draw.random.randint(1, 6),))).tolist()
    inputs = [draw.tensor(draw.shape(), dtype)]
    chosen = options("Bucketize", boundaries=boundaries)
    return Case(operator, inputs, [Tensor(dtype="int32")], chosen)


@cases("BROADCAST_ARGS")
def broadcast_args(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    other = tuple(1 if draw.chance(0.3) else size for size in shape)[draw.random.randrange(2) :]
    return Case(operator, [const(shape), const(other)], [Tensor(dtype="int32")])
