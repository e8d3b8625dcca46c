"""Boosted trees of LightGBM and XGBoost, converted with onnxmltools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corpus.entry import Input
from corpus.made import maker

_ROWS = 64


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Rows of eight numbers, and the class of each."""
    random = np.random.default_rng(5)
    numbers = random.standard_normal((400, 8)).astype(np.float32)
    return numbers, (numbers @ random.standard_normal((8, 3))).argmax(1)


def _lightgbm(model: str, **settings: Any) -> Any:
    import lightgbm
    from onnxmltools import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    numbers, classes = _table()
    trees = getattr(lightgbm, model)(n_estimators=20, verbose=-1, n_jobs=1, **settings)
    trees.fit(numbers, classes)
    return convert_lightgbm(trees, initial_types=[("X", FloatTensorType([None, 8]))])


def _xgboost(model: str) -> Any:
    import xgboost
    from onnxmltools import convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    numbers, classes = _table()
    trees = getattr(xgboost, model)(n_estimators=20, max_depth=5, n_jobs=1).fit(numbers, classes)
    return convert_xgboost(trees, initial_types=[("X", FloatTensorType([None, 8]))])


TREES: Mapping[str, tuple[Callable[[], Any], str]] = {
    "lightgbm-classifier": (partial(_lightgbm, "LGBMClassifier"), "LightGBM"),
    "lightgbm-regressor": (partial(_lightgbm, "LGBMRegressor", max_depth=6), "LightGBM"),
    "xgboost-classifier": (partial(_xgboost, "XGBClassifier"), "XGBoost"),
    "xgboost-regressor": (partial(_xgboost, "XGBRegressor"), "XGBoost"),
}


def convert(name: str, path: Path) -> None:
    """Grow some trees, and convert them."""
    path.write_bytes(TREES[name][0]().SerializeToString())


for _name, (_, _family) in TREES.items():
    maker(
        _name,
        family=_family,
        origin=f"{_family}, onnxmltools",
        inputs={"X": Input(shape=(_ROWS, 8))},
    )(partial(convert, _name))
