"""Models as PyTorch's two exporters write them, against ONNX Runtime reading the same file.

`scripts/record_exported_models.py` writes the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray

import crosschip
from crosschip.importers import load

Array = NDArray[Any]
FILES = sorted((Path(__file__).parent / "exported").glob("*.onnx"))
SIZES = ({"batch": 2, "sequence": 6, "step": 1, "past": 4}, {"batch": 1, "sequence": 1, "past": 9})
WORDS = 200


def test_files_are_there() -> None:
    assert len(FILES) == 5


@pytest.mark.slow
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_outputs(file: Path, device: str) -> None:
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    with crosschip.compile(load(file), devices=[device], cache=False) as compiled:
        for sizes in SIZES:
            inputs = inputs_of(session, sizes)
            expected = session.run(None, inputs)
            found = compiled.run(inputs)
            for output, wanted in zip(session.get_outputs(), expected, strict=True):
                assert found[output.name].shape == wanted.shape
                difference = np.abs(found[output.name] - wanted).max()
                assert difference <= 1e-4 * np.abs(wanted).max()


def inputs_of(session: onnxruntime.InferenceSession, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Words, masks that leave some out, positions, pictures, and what was kept of other words."""
    known = {**sizes, "total": sizes["past"] + sizes.get("step", 1)}
    random = np.random.default_rng(3)
    made = {}
    for value in session.get_inputs():
        shape = [known.get(size, 1) if isinstance(size, str) else size for size in value.shape]
        if value.type == "tensor(float)":
            made[value.name] = random.standard_normal(shape).astype(np.float32)
        elif value.name == "input_ids":
            made[value.name] = random.integers(3, WORDS, shape)
        else:
            made[value.name] = np.ones(shape, np.int64)
    if "attention_mask" in made:
        made["attention_mask"][:, : made["attention_mask"].shape[1] // 3] = 0
    if "token_type_ids" in made:
        made["token_type_ids"] = made["input_ids"] % 2
    if "position_ids" in made:
        made["position_ids"] *= sizes["past"]
    return made
