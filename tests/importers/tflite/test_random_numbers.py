"""Random generators: numbers that go on from run to run, and their distribution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.importers.tflite.single_operator import Case, Tensor, const, options
from tests.importers.tflite.test_subgraphs import expected, litert

import crosschip


def _random(operator: str, shape: list[int], seed: int) -> bytes:
    chosen = options("Random", seed=seed, seed2=seed)
    return Case(operator, [const(shape)], [Tensor()], chosen).file()


@pytest.mark.parametrize("operator", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_each_run_of_a_session_draws_the_next_numbers(operator: str) -> None:
    content = _random(operator, [2, 3], seed=7)
    model = crosschip.load(content)
    assert list(model.inputs) == ["past.out0_generator"]
    interpreter = litert(content)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        session = compiled.session()
        for _ in range(3):
            (numbers,) = expected(interpreter, [])
            np.testing.assert_allclose(session.run({})["out0"], numbers, rtol=1e-5)


def test_numbers_without_a_seed_have_the_distribution() -> None:
    samples = {}
    for operator in ("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"):
        model = crosschip.load(_random(operator, [4, 1000], seed=0))
        with crosschip.compile(model, "reference", cache=False) as compiled:
            samples[operator] = compiled.session().run({})["out0"]
    uniform, normal = samples.values()
    # Standard errors of the means are 0.005 and 0.016.
    assert abs(uniform.mean() - 0.5) < 0.02
    assert abs(uniform.std() - 12**-0.5) < 0.01
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(normal.mean()) < 0.06
    assert abs(normal.std() - 1) < 0.04


def test_samples_have_the_odds_of_their_classes() -> None:
    odds = np.array([0.2, 0.5, 0.3], np.float32)
    inputs = [Tensor(np.log(odds)[None], constant=True), const(4000)]
    chosen = options("Random", seed=0, seed2=0)
    model = crosschip.load(Case("MULTINOMIAL", inputs, [Tensor(dtype="int32")], chosen).file())
    with crosschip.compile(model, "reference", cache=False) as compiled:
        samples = compiled.session().run({})["out0"]
    np.testing.assert_allclose(np.bincount(samples[0]) / 4000, odds, atol=0.03)
