"""The records of quirks: each still occurs, and its workaround avoids it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
from tests.limits import is_limited, lacks_avx512
from tests.modelling import ROOT, python_path

import crosschip
from crosschip.devices.kits.quirks import (
    ENGINES,
    Dies,
    Differs,
    Quirk,
    Quirks,
    Raises,
    Verdict,
    quirks_of,
)
from crosschip.ir import Array
from crosschip.ops import operators
from crosschip.ops.standard.activation import Relu

pytestmark = pytest.mark.slow

RECORDS = [record for engine in ENGINES for record in quirks_of(engine).values()]


class Seen(NamedTuple):
    """The engine and the processor with which the quirks of a device were recorded."""

    module: str
    distribution: str
    version: str
    has_avx512: bool = False


SEEN = {
    "openvino": Seen("openvino", "openvino", "2026.4.1", has_avx512=True),
    "onnxruntime": Seen("onnxruntime", "onnxruntime", "1.32.0", has_avx512=True),
    "xla": Seen("jax", "jax", "0.10.2", has_avx512=True),
    "iree": Seen("iree", "iree-base-compiler", "3.13.0"),
    "litert": Seen("ai_edge_litert", "ai-edge-litert", "2.3.0"),
    "torch": Seen("torch", "torch", "2.13.0"),
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.engine}-{record.name}")
def test_the_record(record: Quirk) -> None:
    assert record.condition[0].islower(), "it follows upon `where`"
    assert not (record.condition + record.symptom).endswith(".")
    assert set(record.operators) <= operators().keys()
    for avoiding in record.avoided_by:
        outer, *path = avoiding.__qualname__.split(".")
        found = getattr(import_module(avoiding.__module__), outer)
        for name in path:
            found = getattr(found, name)
        assert found is avoiding
    assert record.avoided_by


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.engine}-{record.name}")
def test_the_reproduction(record: Quirk) -> None:
    """With the recorded version and kind of processor; `make quirks` is for others."""
    seen = SEEN.get(record.engine)
    if seen is None or find_spec(seen.module) is None:
        assert record.verdict() is Verdict.NOT_INSTALLED
        return
    is_seen = version(seen.distribution).partition("+")[0] == seen.version and not is_limited()
    is_other = not record.without and lacks_avx512() is seen.has_avx512
    if not is_seen or is_other:
        avx512 = "with" if seen.has_avx512 else "without"
        pytest.skip(f"the records are of {seen.distribution} {seen.version} {avx512} AVX-512")
    expected = Verdict.GONE if record.fixed_in else Verdict.PRESENT
    assert record.verdict() is (expected if record.occurs_here else Verdict.OTHER_PROCESSOR)


@pytest.mark.parametrize(
    "record",
    [record for record in RECORDS if record.model is not None],
    ids=lambda record: f"{record.engine}-{record.name}",
)
def test_it_is_avoided(record: Quirk) -> None:
    """The device computes the model of a quirk right, or another device does."""
    if record.environment:
        program = (
            f"from tests.devices.test_quirks import compare; compare{record.engine, record.name}"
        )
        environment = {**os.environ, **record.environment, "PYTHONPATH": python_path()}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    else:
        compare(record.engine, record.name)


def compare(engine: str, name: str) -> None:
    """Compare the model of a quirk with the right result."""
    record = quirks_of(engine)[name]
    with crosschip.compile(record.build(), [engine, "reference"], cache=False) as compiled:
        for inputs in (*record.before, record.inputs):
            given = {f"x{index}": array for index, array in enumerate(inputs)}
            outputs = list(compiled.run(given).values())
        assert record.is_right(outputs), outputs


def table_of(outcome: object) -> Quirks:
    def run(reproduction: object, quirk: Quirk) -> list[Array]:
        if isinstance(outcome, Exception):
            raise outcome
        return [np.asarray(outcome)]

    return Quirks("reference", "1", run)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ([0, 1], Verdict.PRESENT),
        ([np.nan, 1], Verdict.GONE),
        ([2, 1], Verdict.DIFFERENT),
        ([[0, 1]], Verdict.DIFFERENT),
        (ValueError("no"), Verdict.DIFFERENT),
        (ModuleNotFoundError("engine"), Verdict.NOT_INSTALLED),
    ],
)
def test_verdicts(outcome: object, verdict: Verdict) -> None:
    quirk = table_of(outcome)

    @quirk(
        Relu,
        when="its input is NaN",
        what="makes 0 of it",
        avoided_by=Relu.infer_shape,
        inputs=[[np.nan, 1]],
        right=[np.nan, 1],
        wrong=[0, 1],
    )
    def relu_of_nan() -> None: ...

    assert quirk.records["relu-of-nan"].verdict() is verdict


@pytest.mark.parametrize(
    ("outcome", "wrong", "verdict"),
    [
        (ValueError("no such kernel"), Raises("kernel"), Verdict.PRESENT),
        (ValueError("other"), Raises("kernel"), Verdict.DIFFERENT),
        (ValueError("other"), Differs(), Verdict.DIFFERENT),
        (5, Differs(), Verdict.PRESENT),
        (5, Dies(), Verdict.DIFFERENT),
        (1, Differs(), Verdict.GONE),
    ],
)
def test_what_is_wrong(outcome: object, wrong: object, verdict: Verdict) -> None:
    quirk = table_of(outcome)
    quirk(when="", what="", avoided_by=compare, right=1, wrong=wrong)(compare)
    assert quirk.records["compare"].verdict() is verdict


def test_a_feature_that_the_processor_lacks() -> None:
    quirk = table_of(1)
    feature = "unheard_of"
    quirk(when="", what="", avoided_by=compare, right=1, wrong=2, processor=feature)(compare)
    assert quirk.records["compare"].verdict() is Verdict.OTHER_PROCESSOR


def test_a_process_that_ends() -> None:
    assert isinstance(quirks_of("openvino")["broadcast-to-no-axes"].outcome(), Dies)


def test_the_script() -> None:
    command = [sys.executable, "scripts/quirks.py", "openvino", "--name", "relu-of-nan"]
    environment = {**os.environ, "PYTHONPATH": python_path()}
    shared = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    done = subprocess.run([*command, "--json"], **shared)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"] == {"still there": 1}
    assert told["quirks"][0]["quirk"] == "relu-of-nan"
    done = subprocess.run(command, **shared)  # type: ignore[call-overload]
    assert "still there" in done.stdout
    assert "returns 0" in done.stdout
