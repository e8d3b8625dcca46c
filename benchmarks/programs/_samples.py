"""What the programs are run on: pictures and sounds, always the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

from crosschip.ir import Array

RATE = 16000
"""Samples a second of the sounds."""

_VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480))
"""The first three formants in Hz of the vowels in `father`, `heed`, `who'd` and `head` (Peterson
and Barney 1952)."""


@cache
def portrait() -> Array:
    """Return a photograph of a woman in uniform [600, 512, 3], uint8, in RGB; Matplotlib has it."""
    path = Path(matplotlib.get_data_path(), "sample_data", "grace_hopper.jpg")
    return np.asarray(Image.open(path).convert("RGB"))


@cache
def speech() -> Array:
    """Return four seconds of vowels with pauses between, float32 in -1..1, at `RATE`."""
    pause = np.zeros(RATE // 4)
    syllables = [_syllable(vowel, 110 + 12 * (i % 3)) for i, vowel in enumerate(_VOWELS * 2)]
    sound = np.concatenate([part for syllable in syllables for part in (pause, syllable)])
    noise = np.random.default_rng(0).normal(scale=1e-3, size=sound.size)
    return np.asarray(0.5 * sound / np.abs(sound).max() + noise, np.float32)


def _syllable(formants: tuple[int, ...], pitch: float) -> Array:
    """Synthesize a quarter of a second of a vowel: harmonics of a falling pitch, by formants."""
    time = np.arange(RATE // 4) / RATE
    phase = 2 * np.pi * np.cumsum(pitch * (1.1 - 0.8 * time)) / RATE
    sound = np.zeros_like(time)
    for harmonic in range(1, int(3800 / pitch)):
        distances = (harmonic * pitch - np.array(formants)) / (60 + 0.05 * np.array(formants))
        sound += np.sin(harmonic * phase) * np.sum(1 / (1 + distances**2)) / harmonic**0.5
    return np.asarray(sound * np.hanning(time.size) ** 0.5)
