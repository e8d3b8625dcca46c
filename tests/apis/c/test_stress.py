"""Libraries under load: many handles, and calls of any kind.

`CROSSCHIP_CYCLES=100000` makes and destroys as many handles of each kind, and
`CROSSCHIP_FUZZ_CALLS=1000000` makes as many random calls; `CI` makes more of them than a developer.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.apis.c.conftest import Program, linked, run

from crosschip.apis.nnrt import OH_NN_ReturnCode

PROGRAMS = Path(__file__).with_name("programs")
CYCLES = int(os.environ.get("CROSSCHIP_CYCLES", "4000"))
CALLS = int(os.environ.get("CROSSCHIP_FUZZ_CALLS", "15000" if "CI" in os.environ else "4000"))
LIMIT = 600.0
"""Seconds after which a program counts as hung."""
MOST_BYTES = 5 * 2**20


KINDS = {
    "cycles.c": {"device", "context", "model", "compilation", "execution", "error"},
    "nnrt_cycles.c": {
        *("description", "tensor", "quantization", "model", "compilation", "executor"),
        *("run", "error"),
    },
}


def built(name: str, libraries: Path, program: Program) -> Path:
    library = "neural_network_runtime" if name.startswith("nnrt") else "nnadapter"
    return program(PROGRAMS / name, "-D_GNU_SOURCE", *linked(libraries, library))


@pytest.mark.parametrize("name", KINDS)
def test_memory_stays_as_handles_come_and_go(libraries: Path, program: Program, name: str) -> None:
    made = built(name, libraries, program)
    printed = run(made, CYCLES, timeout=LIMIT + CYCLES / 10)
    grown = {kind: int(size) for kind, size in map(str.split, printed.splitlines())}
    assert set(grown) == KINDS[name]
    assert max(grown.values()) <= MOST_BYTES, grown


@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_ends_the_process(libraries: Path, program: Program, seed: int) -> None:
    """Every call gives a code, and every kind of code comes up that calls can lead to."""
    made = built("fuzz.c", libraries, program)
    counts = [int(count) for count in run(made, CALLS, seed, timeout=LIMIT + CALLS / 10).split()]
    no_error, _memory, dimensions, parameter, not_found, internal, _feature, others = counts
    assert min(no_error, dimensions, parameter, not_found) > 0
    assert internal == others == 0


def test_no_call_of_nnrt_ends_the_process(libraries: Path, program: Program) -> None:
    made = built("nnrt_fuzz.c", libraries, program)
    counts = [int(count) for count in run(made, CALLS, 1, timeout=LIMIT + CALLS / 10).split()]
    named = dict(zip(OH_NN_ReturnCode, counts, strict=False))
    reached = ["SUCCESS", "INVALID_PARAMETER", "OPERATION_FORBIDDEN"]
    assert min(named[OH_NN_ReturnCode[f"OH_NN_{name}"]] for name in reached) > 0
    assert named[OH_NN_ReturnCode.OH_NN_UNAVAILABLE_DEVICE] == 0
    assert counts[-1] == 0
