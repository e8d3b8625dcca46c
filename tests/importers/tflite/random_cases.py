"""What is drawn for random generators with seeds."""

from __future__ import annotations

import numpy as np
from tests.importers.tflite.single_operator import Case, Draw, Tensor, cases, const, options

RANDOM = ("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR")


def _seeds(draw: Draw) -> dict[str, int]:
    return {name: draw.random.randint(1, 2**62) for name in ("seed", "seed2")}


@cases("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random(draw: Draw, operator: str) -> Case:
    return Case(operator, [const(draw.shape())], [Tensor()], options("Random", **_seeds(draw)))


@cases("MULTINOMIAL")
def multinomial(draw: Draw, operator: str) -> Case:
    logits = Tensor(draw.special(draw.shape(2, 2)))
    inputs = [logits, const(draw.random.randint(1, 9))]
    dtype = draw.random.choice(("int32", "int64"))
    return Case(operator, inputs, [Tensor(dtype=dtype)], options("Random", **_seeds(draw)))


@cases("STABLEHLO_RNG_BIT_GENERATOR")
def rng_bit_generator(draw: Draw, operator: str) -> Case:
    algorithm = draw.random.randrange(3)
    length = 2 if algorithm == 2 else draw.random.choice((2, 3))
    state = draw.numpy.integers(0, 2**64, length, dtype=np.uint64)
    dtype = draw.random.choice(("int32", "int64", "uint32", "uint64"))
    outputs = [Tensor(np.zeros(length, np.uint64), "uint64")]
    outputs.append(Tensor(np.zeros(draw.shape(), dtype), dtype))
    chosen = options("StablehloRngBitGenerator", algorithm=algorithm)
    return Case(operator, [Tensor(state, "uint64")], outputs, chosen)
