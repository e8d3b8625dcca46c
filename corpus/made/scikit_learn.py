"""Models of scikit-learn, converted with skl2onnx as it does by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from corpus.entry import Input
from corpus.made import maker

_ROWS = 40


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Rows of six numbers, and the class of each."""
    random = np.random.default_rng(11)
    numbers = random.standard_normal((300, 6)).astype(np.float32)
    return numbers, (numbers @ random.standard_normal((6, 3))).argmax(1)


def _named(classes: np.ndarray) -> np.ndarray:
    return np.array(["left", "middle", "right"])[classes]


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    numbers, classes = _table()
    return LogisticRegression(max_iter=200).fit(numbers, classes)


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    numbers, classes = _table()
    return RandomForestClassifier(30, max_depth=6, random_state=0).fit(numbers, _named(classes))


def _vector_machine() -> Any:
    from sklearn.svm import SVC

    numbers, classes = _table()
    return SVC(probability=True, random_state=0).fit(numbers, classes)


def _boosted() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    numbers, _ = _table()
    return GradientBoostingRegressor(n_estimators=40, random_state=0).fit(numbers, numbers[:, 0])


def _perceptron() -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    numbers, classes = _table()
    network = MLPClassifier((16, 8), max_iter=30, random_state=0)
    return make_pipeline(StandardScaler(), network).fit(numbers, _named(classes))


def _neighbours() -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    numbers, classes = _table()
    return KNeighborsClassifier(5).fit(numbers[:100], classes[:100])


def _voters() -> Any:
    """Several heads: a vote of three classifiers on features made in two ways."""
    from sklearn.decomposition import PCA
    from sklearn.ensemble import VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import FeatureUnion, make_pipeline
    from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
    from sklearn.tree import DecisionTreeClassifier

    numbers, classes = _table()
    features = FeatureUnion([("principal", PCA(3)), ("products", PolynomialFeatures(2))])
    voters = [
        ("line", LogisticRegression(max_iter=300)),
        ("tree", DecisionTreeClassifier(max_depth=5, random_state=0)),
        ("bayes", GaussianNB()),
    ]
    vote = VotingClassifier(voters, voting="soft", flatten_transform=False)
    return make_pipeline(MinMaxScaler(), features, vote).fit(numbers, classes)


def _clusters() -> Any:
    from sklearn.cluster import KMeans

    return KMeans(4, n_init=2, random_state=0).fit(_table()[0])


ESTIMATORS: Mapping[str, tuple[Callable[[], Any], str]] = {
    "logistic-regression": (_logistic, "LogisticRegression"),
    "random-forest-of-strings": (_forest, "RandomForestClassifier"),
    "support-vectors": (_vector_machine, "SVC"),
    "gradient-boosting": (_boosted, "GradientBoostingRegressor"),
    "scaled-perceptron": (_perceptron, "MLPClassifier"),
    "nearest-neighbours": (_neighbours, "KNeighborsClassifier"),
    "voters": (_voters, "VotingClassifier"),
    "k-means": (_clusters, "KMeans"),
}


def convert(name: str, path: Path) -> None:
    """Train one of the estimators on numbers, and convert it."""
    from skl2onnx import to_onnx

    model = to_onnx(ESTIMATORS[name][0](), _table()[0][:1])
    path.write_bytes(model.SerializeToString())


for _name, (_, _family) in ESTIMATORS.items():
    maker(
        _name,
        family=_family,
        origin="scikit-learn, skl2onnx.to_onnx with defaults",
        inputs={"X": Input(shape=(_ROWS, 6))},
    )(partial(convert, _name))


@maker(
    "columns-of-a-table",
    family="ColumnTransformer",
    origin="scikit-learn, skl2onnx.convert_sklearn of columns of numbers and strings",
    inputs={
        "age": Input(values=[[30.0], [41.5], [7.0]]),
        "fare": Input(values=[[7.25], [71.5], [0.0]]),
        "port": Input(values=[["S"], ["C"], ["?"]]),
    },
)
def columns(path: Path) -> None:
    """Numbers that are scaled and categories that are looked up, into one classifier."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    random = np.random.default_rng(4)
    table = np.empty((200, 3), object)
    table[:, :2] = random.uniform(0, 80, (200, 2))
    table[:, 2] = random.choice(["S", "C", "Q"], 200)
    chosen = (table[:, 0] > 40) ^ (table[:, 2] == "S")
    features = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [0, 1]),
            ("port", OneHotEncoder(handle_unknown="ignore"), [2]),
        ]
    )
    pipeline = make_pipeline(features, LogisticRegression()).fit(table, chosen.astype(np.int64))
    types = [
        ("age", FloatTensorType([None, 1])),
        ("fare", FloatTensorType([None, 1])),
        ("port", StringTensorType([None, 1])),
    ]
    path.write_bytes(convert_sklearn(pipeline, initial_types=types).SerializeToString())


@maker(
    "words-of-sentences",
    family="TfidfVectorizer",
    origin="scikit-learn, skl2onnx.convert_sklearn of texts",
    inputs={"text": Input(values=[["the cat sat"], ["on a mat, the dog"], [""]])},
)
def words(path: Path) -> None:
    """The weights of the words of sentences, and what these are about.

    They are not made small, for which ONNX Runtime asks for a locale that not every machine has.
    """
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = ["the cat sat", "a dog ran", "the cat and a dog", "on the mat a cat sat"] * 5
    pipeline = make_pipeline(TfidfVectorizer(lowercase=False), LogisticRegression())
    pipeline.fit(texts, ["cat", "dog", "both", "cat"] * 5)
    types = [("text", StringTensorType([None, 1]))]
    path.write_bytes(convert_sklearn(pipeline, initial_types=types).SerializeToString())
