"""The programs of the gallery give the right answers, and are short."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from write_gallery import EXAMPLES, GALLERY, Example, missing, run  # noqa: E402


def _box(printed: str) -> bool:
    """The face is at 175 to 350 from the left, and 130 to 350 from the top."""
    x, y, width, height = map(int, re.findall(r"-?\d+", printed.partition("box")[2]))
    overlap = (min(x + width, 350) - max(x, 175)) * (min(y + height, 350) - max(y, 130))
    return 2 * overlap > width * height + 175 * 220 - overlap


_ANSWERS: dict[str, Callable[[str], object]] = {
    "read_text": lambda printed: "One model, any AI chip" in printed,
    "classify_folder": lambda printed: (
        re.findall(r"png (\d+)", printed) == ["0", "270", "180", "90"]
    ),
    "detect_faces": _box,
    "detect_speech": lambda printed: _spans(printed, [(0.5, 1.0), (1.5, 2.0)]),
    "transcribe_notes": lambda printed: "[60, 64, 67, 72]" in printed,
    "embed_sentences": lambda printed: "[1, 0, 3, 2]" in printed,
    # In ddddocr's list of characters these are 7, K, 3 and x.
    "quantized_model": lambda printed: "[409, 4666, 7721, 6736]" in printed,
    "compare_engines": lambda printed: (
        len(errors := [float(text) for text in re.findall(r"error (\S+)", printed)]) >= 4
        and max(errors) < 1e-4
    ),
    "two_devices": lambda printed: "onnxruntime runs 3;" in printed and "1.000" in printed,
}
"""Whether what a program prints is right, by what its input is known to hold."""


def _spans(printed: str, expected: list[tuple[float, float]]) -> bool:
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", printed)]
    known = [number for span in expected for number in span]
    return len(numbers) == len(known) and bool(np.allclose(numbers, known, atol=0.15))


@pytest.mark.parametrize("example", GALLERY, ids=lambda example: example.name)
def test_a_program_gives_the_right_answer(example: Example, tmp_path: Path) -> None:
    for module in example.needs:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    if missing(example):
        pytest.skip("`python -m corpus fetch` has not been run")
    printed = run(example, tmp_path)
    assert _ANSWERS[example.name](printed), printed
    assert [path.stat().st_size > 1000 for path in tmp_path.glob(f"{example.name}.[ps][nv]g")]


def test_programs_are_short() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {example.name for example in GALLERY}
    for path in EXAMPLES.glob("*.py"):
        code = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(code) <= 25, path


def test_the_page_shows_the_programs() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert path.read_text(encoding="utf-8").partition('"""\n\n')[2].strip() in page, path
