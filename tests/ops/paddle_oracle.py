"""Outputs of Paddle in `recorded/`, recorded by `scripts/record_paddle_oracle.py`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.ir import Array

RECORDED = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Case:
    """Recorded call of a Paddle operator.

    Attributes:
        settings: its parameters, by Paddle's names or ours.
        inputs: its tensors.
        outputs: its results.
    """

    settings: dict[str, Any]
    inputs: dict[str, Array]
    outputs: list[Array]


def cases_of(operator: str) -> list[Case]:
    """Return the recorded calls of an operator."""
    with np.load(RECORDED / f"paddle_{operator}.npz", allow_pickle=False) as file:
        arrays = dict(file)
    assert str(arrays.pop("oracle")).startswith("paddlepaddle ")
    count = 1 + max(int(name.partition("/")[0]) for name in arrays)
    return [_case(arrays, f"{number}/") for number in range(count)]


def _case(arrays: dict[str, Array], prefix: str) -> Case:
    own = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    inputs = {name[6:]: array for name, array in own.items() if name.startswith("input/")}
    outputs = [own[f"output/{i}"] for i in range(sum(n.startswith("output/") for n in own))]
    return Case(json.loads(str(own["settings"])), inputs, outputs)
