"""Examples of activation functions."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import examples_in
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    Hardmax,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    Mish,
    PRelu,
    Relu,
    Relu6,
    Selu,
    Shrink,
    Sigmoid,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)

_ACTIVATION = (
    *examples_in(-4, 4),
    example(
        input=random(
            2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        quantization=Quantization((0.05,)),
    ),
)

examples(Relu, *_ACTIVATION, example(input=random(2, 3, dtype=ElementType.INT32, low=-9, high=9)))

examples(Relu6, *_ACTIVATION, *examples_in(-9, 9))

examples(
    LeakyRelu,
    *_ACTIVATION,
    example(input=random(2, 3), alpha=-0.5),
    example(input=random(2, 3), alpha=1.5),
)

examples(
    PRelu,
    example(input=random(2, 3, 4, 5), slope=random(3)),
    example(input=random(2, 3, 4, 5), slope=random(1)),
    example(input=random(2, 3, 4), slope=random(2, 3, 4)),
    example(input=random(2, 3, 4), slope=random(3, 1)),
    example(input=random(4), slope=random(4)),
    example(input=random(2, 3, 4), slope=np.array([0.1, -0.2, 1.5], np.float32)),
    example(
        input=random(
            2, 3, 4, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.1,))
        ),
        slope=np.array([0.1, 0.2, 0.3], np.float32),
        quantization=Quantization((0.1,)),
    ),
)

examples(Sigmoid, *_ACTIVATION)

examples(Tanh, *_ACTIVATION)

examples(
    HardSigmoid,
    *_ACTIVATION,
    example(input=random(2, 3), alpha=1 / 6, beta=0.25),
    example(input=random(2, 3), alpha=1 / 6),
)

examples(HardSwish, *_ACTIVATION, example(input=random(2, 3), alpha=0.2, beta=0.25))

examples(Swish, *_ACTIVATION)

examples(Softsign, *_ACTIVATION)

examples(ThresholdedRelu, *_ACTIVATION, example(input=random(2, 5), alpha=-0.5))

examples(
    Shrink,
    *_ACTIVATION,
    example(input=random(2, 5), bias=1.5, lambd=1.0),
    example(input=random(2, 5), bias=0.5, lambd=-0.5),
)

_ALONG_AXIS = (
    example(input=random(2, 3, 4)),
    example(input=random(2, 3, low=-99, high=99), axis=-1),
    example(input=random(5), axis=0),
    example(
        input=random(
            2, 6, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        quantization=Quantization((0.05,)),
    ),
)

examples(Softmax, *_ALONG_AXIS)

examples(LogSoftmax, *_ALONG_AXIS)

examples(Gelu, *_ACTIVATION, *(dict(e, approximate=True) for e in _ACTIVATION))

examples(
    Softplus,
    *_ACTIVATION,
    example(input=random(2, 5), beta=2.5, threshold=1.0),
    example(input=model_input([[-99.0, -20.0, -1.0], [1.0, 20.0, 99.0]]), threshold=np.inf),
)

examples(Mish, *_ACTIVATION)

examples(Elu, *_ACTIVATION, example(input=random(2, 5), alpha=-0.5))

examples(Selu, *_ACTIVATION, example(input=random(2, 5), alpha=2.0, gamma=0.5))

examples(Celu, *_ACTIVATION, example(input=random(2, 5), alpha=2.5))

examples(Hardmax, *_ALONG_AXIS)
