"""The conversions of `importers/foreign.py` where their tools are installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosschip
from crosschip.importers.foreign import FORMATS, format_of_object
from crosschip.ir import ModelFileError

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore")]


def test_a_function_of_jax() -> None:
    jax2onnx = pytest.importorskip("jax2onnx")
    import jax

    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    function = jax.jit(lambda x: jax.nn.softmax(jax.numpy.tanh(x @ weights)))
    jax_format = format_of_object(function)
    assert jax_format is not None
    model = eval(jax_format.conversion, {**globals(), "jax2onnx": jax2onnx, "function": function})
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-5)


def test_a_model_of_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    import torch

    layers = keras.layers
    network = keras.Sequential(
        [
            *(layers.Input((16, 16, 3)), layers.Conv2D(8, 3, activation="relu")),
            *(layers.GlobalAveragePooling2D(), layers.Dense(4, activation="softmax")),
        ]
    )
    path = tmp_path / "net.keras"
    network.save(path)
    with pytest.raises(ModelFileError, match="KERAS_BACKEND=torch") as caught:
        crosschip.load(path)
    example = torch.randn(2, 16, 16, 3)
    conversion = str(caught.value).partition("convert it: ")[2]
    model = eval(conversion, {**globals(), "keras": keras, "example": example})
    expected: Any = network(example).detach()
    with crosschip.compile(model, "reference", cache=False) as compiled:
        np.testing.assert_allclose(compiled(example), expected, rtol=1e-4, atol=1e-6)


def test_an_estimator_of_scikit_learn() -> None:
    skl2onnx = pytest.importorskip("skl2onnx")
    from sklearn.linear_model import LogisticRegression

    features = np.random.default_rng(0).normal(size=(50, 4))
    estimator = LogisticRegression().fit(features, features[:, 0] > 0)
    (conversion,) = [each.conversion for each in FORMATS if "scikit-learn" in each.name]
    names = {"skl2onnx": skl2onnx, "estimator": estimator, "X": features}
    model = eval(conversion, {**globals(), **names})
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        labels = compiled.run({"X": features.astype(np.float32)})
    np.testing.assert_array_equal(next(iter(labels.values())), estimator.predict(features))
