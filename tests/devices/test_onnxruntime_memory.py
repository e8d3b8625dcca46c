"""Memory of a process that compiles repeatedly on `onnxruntime`."""

from __future__ import annotations

import sys

import pytest
from tests.modelling import at_once

LAYERS, COMPILATIONS = 60, 100

COMPILING = f"""
import gc, sys
import numpy as np
from tests.modelling import float32, model_of
import crosschip
from crosschip.ops.standard.activation import Tanh
from crosschip.ops.standard.arithmetic import Add

def make(b, x):
    for layer in range({LAYERS}):
        x = b.add(Tanh, b.add(Add, x, np.full(250, layer, np.float32)))
    return x

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

model = model_of(make, float32(250))

def compile_often(count):
    for _ in range(count):
        crosschip.compile(model, "onnxruntime", cache=False, threads=1).close()
    gc.collect()

compile_often(20)
before = resident()
compile_often({COMPILATIONS})
print(resident() - before)
"""


@pytest.mark.slow  # it takes many compilations to tell a leak from the allocator's own growth
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_compiling_leaves_nothing_of_a_model() -> None:
    """Weights of 1000 bytes each stay inside the optimized file."""
    (grown,) = map(int, at_once(COMPILING, count=1))
    assert grown < COMPILATIONS * LAYERS * 1000 / 3
