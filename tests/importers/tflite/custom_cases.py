"""What is drawn for the custom operators that LiteRT has kernels for."""

from __future__ import annotations

import numpy as np
from flatbuffers import flexbuffers
from tests.importers.tflite.single_operator import Case, Draw, Tensor, cases, const

CUSTOM = (
    *("custom.AudioSpectrogram", "custom.Mfcc", "custom.NumericVerify"),
    "custom.aeq.hadamard_rotation",
)


def _options(**values: float) -> bytes:
    return bytes(flexbuffers.Dumps(values))


@cases("custom.AudioSpectrogram")
def audio_spectrogram(draw: Draw, operator: str) -> Case:
    window, stride = draw.random.randint(2, 40), draw.random.randint(1, 20)
    samples = draw.reals((window + draw.random.randint(0, 50), draw.random.randint(1, 2)), -1, 1)
    options = _options(window_size=window, stride=stride, magnitude_squared=draw.chance(0.5))
    return Case(operator, [Tensor(samples)], [Tensor()], custom_options=options)


@cases("custom.Mfcc")
def mfcc(draw: Draw, operator: str) -> Case:
    channels = draw.random.randint(4, 20)
    options = _options(
        upper_frequency_limit=draw.random.randint(2000, 4000),
        lower_frequency_limit=draw.random.randint(0, 200),
        filterbank_channel_count=channels,
        dct_coefficient_count=draw.random.randint(1, channels),
    )
    spectrogram = draw.reals((draw.random.randint(1, 2), draw.random.randint(1, 4), 129), 0, 4)
    inputs = [Tensor(spectrogram), const([draw.random.choice((8000, 16000))])]
    return Case(operator, inputs, [Tensor()], custom_options=options)


@cases("custom.aeq.hadamard_rotation")
def hadamard_rotation(draw: Draw, operator: str) -> Case:
    size = 2 ** draw.random.randint(0, 7)
    shape = (*draw.shape(1, 2, 3), size * draw.random.randint(1, 3))
    values = {"hadamard_size": size, "random_binary_vector": [1] * size}
    options = bytes(flexbuffers.Dumps(values))
    # The file declares the shape of the output, which the kernel does not set.
    output = Tensor(np.zeros(shape, np.float32))
    return Case(operator, [Tensor(draw.reals(shape))], [output], custom_options=options)


@cases("custom.NumericVerify")
def numeric_verify(draw: Draw, operator: str) -> Case:
    shape = draw.shape()
    inputs = [draw.quantized(shape, draw.random.choice(("int8", "uint8", "int16")))]
    options = _options(tolerance=0.01, log_if_failed=False)
    inputs.append(Tensor(draw.reals(shape)))
    return Case(operator, inputs, [Tensor()], custom_options=options)
