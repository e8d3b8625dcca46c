"""Quirks of XLA, or of JAX on it, with reproductions; see `devices.kits.quirks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import serialize_executable

from crosschip.devices.kits.quirks import Dies, Differs, Quirk, Quirks, Raises
from crosschip.devices.kits.stablehlo import narrow
from crosschip.devices.kits.stablehlo.converters import arithmetic, indexing
from crosschip.devices.xla.engine import Engine, Executable
from crosschip.ir import Array, ElementType
from crosschip.ops.standard.arithmetic import Add, Div, Pow
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat


def _run(function: Callable[..., Any], quirk: Quirk) -> list[Array]:
    with jax.enable_x64(True):
        return [np.asarray(function(*quirk.inputs))]


quirk = Quirks("xla", "jax 0.10.2", _run)


@quirk(
    Pow,
    when="integers have an exponent of 64 or more",
    what="reads six bits of the exponent",
    avoided_by=arithmetic.pow_,
    inputs=[np.array([3]), np.array([64])],
    right=[3**64 % 2**64 - 2**64 * (3**64 % 2**64 >= 2**63)],
    wrong=[1],
    model=lambda b, x, y: b.add(Pow, x, y),
)
def power_of_many_bits(x: Any, y: Any) -> Any:
    return jax.jit(jnp.power)(x, y)


@quirk(
    Div,
    when="integers are divided by 0",
    what="returns -1",
    avoided_by=arithmetic.div,
    inputs=[np.array([7, 9]), np.array([0, 3])],
    right=[0, 3],
    wrong=[-1, 3],
    model=lambda b, x, y: b.add(Div, x, y),
)
def integers_by_zero(x: Any, y: Any) -> Any:
    return jax.jit(lax.div)(x, y)


@quirk(
    Gather,
    when="an index is out of range",
    what="returns another element",
    avoided_by=indexing.gather,
    inputs=[[1, 2, 3], np.array([5])],
    right=Raises("range"),
    wrong=Differs(),
)
def index_out_of_range(x: Any, places: Any) -> Any:
    return jax.jit(lambda x, places: x.at[places].get(mode="promise_in_bounds"))(x, places)


_FEW = np.arange(12).reshape(3, 4) % 3 - 1


@quirk(
    Concat,
    when="integers of two bits are joined",
    what="ends the process",
    avoided_by=[narrow.inner, narrow.entering],
    inputs=[_FEW.astype(jnp.int2)],
    right=np.concatenate([_FEW, _FEW[:2]]),
    wrong=Dies(),
    dies=True,
    model=lambda b, x: b.add(
        Cast, b.add(Concat, (x, b.constant(_FEW[:2].astype(jnp.int2))), 0), ElementType.INT8
    ),
)
def joined_int2(x: Any) -> Any:
    more = jnp.asarray(_FEW[:2].astype(jnp.int2))
    return jax.jit(lambda x: jnp.concatenate([x, more]))(x)


@quirk(
    Add,
    when="integers have 64 bits, and nothing is set for the process",
    what="computes them in 32",
    avoided_by=Engine.compile,
    inputs=[np.array([2**31])],
    right=[2**32],
    wrong=Differs(),
    model=lambda b, x: b.add(Add, x, x),
)
def int64_in_32_bits(x: Array) -> Any:
    with jax.enable_x64(False):
        return jax.jit(lambda x: x + x)(np.asarray(x))


@quirk(
    when="a program that was loaded is saved",
    what="leaves out what the program calls",
    avoided_by=Executable.to_bytes,
    inputs=[[1]],
    right=[2],
    wrong=Raises(""),
)
def saved_twice(x: Array) -> Any:
    compiled = jax.jit(lambda x: jnp.sort(x) + 1).lower(x).compile()
    for _ in range(2):
        compiled = serialize_executable.deserialize_and_load(
            *serialize_executable.serialize(compiled)
        )
    return compiled(x)
