"""Spectrograms and cepstral coefficients, as matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.importers.facts import size_of
from crosschip.importers.tflite.custom_options import CustomOptions
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Array, ModelError, Operand
from crosschip.ir.budget import spend
from crosschip.ops.standard.arithmetic import Add, Max
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.unary import Log, Sqrt, Square

_FLOOR = np.float32(1e-12)
"""The least energy of a band."""


@imports("custom.AudioSpectrogram")
def audio_spectrogram(node: Node) -> Operand:
    """Import the squared magnitudes of frames' Fourier transforms, or the magnitudes.

    Frames of samples [samples, channels] are multiplied by a periodic Hann window and padded to the
    next power of two.
    """
    options = CustomOptions(node.custom_options)
    window, stride = options.integer("window_size"), options.integer("stride")
    samples = size_of(node[0], 0)
    if window < 2 or stride < 1 or samples < window:
        raise ModelError(f"frames of {window} of {samples} samples with a stride of {stride}")
    length = 1 << (window - 1).bit_length()
    count, bins = 1 + (samples - window) // stride, length // 2 + 1
    spend(bytes=8 * window * (count + 2 * bins))
    positions = np.arange(count)[:, None] * stride + np.arange(window)
    frames = node.add(Gather, node.transpose(node[0], (1, 0)), positions.astype(np.int64), axis=1)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    angles = 2 * np.pi / length * (np.outer(np.arange(window), np.arange(bins)) % length)
    parts = [
        node.add(MatMul, frames, (hann[:, None] * wave(angles)).astype(np.float32))
        for wave in (np.cos, np.sin)
    ]
    energy = node.add(Add, *(node.add(Square, part) for part in parts))
    return energy if options.flag("magnitude_squared") else node.add(Sqrt, energy)


@imports("custom.Mfcc")
def mfcc(node: Node) -> Operand:
    """Import the cosine transform of the logarithms of a spectrogram's bands on the mel scale."""
    options = CustomOptions(node.custom_options)
    rate = int(node.value(1, "the sample rate").item())
    channels = options.integer("filterbank_channel_count")
    coefficients = options.integer("dct_coefficient_count")
    limits = [options.integer(f"{name}_frequency_limit") for name in ("lower", "upper")]
    bands = _filterbank(size_of(node[0], 2), rate, channels, limits[0], limits[1])
    if not 1 <= coefficients <= channels:
        raise ModelError(f"{coefficients} coefficients of {channels} bands")
    energy = node.add(MatMul, node.add(Sqrt, node[0]), bands)
    logarithms = node.add(Log, node.add(Max, energy, _FLOOR))
    angles = np.pi / channels * np.outer(np.arange(channels) + 0.5, np.arange(coefficients))
    cosines = np.sqrt(2 / channels) * np.cos(angles)
    return node.add(MatMul, logarithms, cosines.astype(np.float32))


def _filterbank(bins: int, rate: int, channels: int, lower: float, upper: float) -> Array:
    """Return the weights [bins, channels] of triangular bands, which overlap by half.

    Raises:
        ModelError: there are no such bands.
    """
    if bins < 2 or rate <= 0 or channels < 1 or not 0 <= lower < upper:
        raise ModelError(f"{channels} bands from {lower} to {upper} Hz of {bins} bins at {rate} Hz")
    spend(bytes=8 * bins * channels)
    spacing = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + lower / spacing), int(upper / spacing)
    if last >= bins:
        raise ModelError(f"bands up to {upper} Hz of a spectrogram up to {rate / 2} Hz")
    edges = np.linspace(_mel(lower), _mel(upper), channels + 2)
    # A bin's distance from the left edge of each band, and to its right edge.
    mels = _mel(np.arange(bins) * spacing)[:, None]
    rising = (mels - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - mels) / np.diff(edges)[1:]
    weights = np.maximum(0, np.minimum(rising, falling))
    weights[:first] = weights[last + 1 :] = 0
    return weights.astype(np.float32)


def _mel(frequency: Array | float) -> Array:
    """Return frequencies on the mel scale."""
    return np.asarray(1127 * np.log1p(np.asarray(frequency) / 700))
