"""The best classes of a classification."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crosschip.batch_inference.batching import Outputs
from crosschip.ir import InputError
from crosschip.ir.files import open_regular


class Classes:
    """The classes with the highest scores, by the first output.

    Args:
        count: how many classes.
        labels: the name of each class, in order; `None` if classes have none.

    Attributes:
        digest: a SHA-256, in hexadecimal, of the labels; empty if there are none.
    """

    def __init__(self, count: int, labels: Sequence[str] | None = None) -> None:
        self.count = count
        self._labels = labels
        text = "" if labels is None else "\n".join(labels)
        self.digest = hashlib.sha256(text.encode()).hexdigest() if text else ""

    def best(self, outputs: Outputs) -> bytes:
        """Return what a line of results says about the best classes.

        Raises:
            InputError: the first output is no list of scores, or there are fewer or more labels.
        """
        name, scores = next(iter(outputs.items()))
        scores = np.asarray(scores).reshape(-1) if _is_list(scores) else None
        if scores is None:
            raise InputError(
                f"output {name!r} holds no score for each class, which the best classes are "
                f"chosen by; map without --top"
            )
        if self._labels is not None and len(self._labels) != len(scores):
            raise InputError(
                f"there are {len(self._labels)} labels, but output {name!r} has {len(scores)} "
                f"scores; give a file with a label for each on a line"
            )
        order = np.argsort(-scores.astype(np.float64), kind="stable")[: self.count]
        return b',"top":' + msgspec.json.encode([self._entry(int(i), scores[i]) for i in order])

    def _entry(self, index: int, score: Any) -> dict[str, object]:
        label = {} if self._labels is None else {"label": self._labels[index]}
        return {"class": index, **label, "score": float(score)}


def _is_list(scores: Any) -> bool:
    """Return whether a value is an array of numbers along one axis."""
    return (
        isinstance(scores, np.ndarray)
        and scores.dtype != object
        and scores.size > 0
        and scores.size == max(scores.shape, default=1)
    )


def read_labels(path: Path) -> list[str]:
    """Read the names of classes, one a line.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with open_regular(path) as file:
            return file.readall().decode().splitlines()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: cannot be read: {why}") from None
