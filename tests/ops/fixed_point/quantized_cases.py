"""Random quantized operators whose integers LiteRT's reference kernels compute in fixed point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.importers.tflite.single_operator import Case, Draw, Tensor, const, options

_ALL = ("int8", "uint8", "int16")
_BYTES = ("int8", "uint8")

_OUTPUTS = {
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
}
"""The scale and zero point that LiteRT demands of some outputs."""

TYPES = {
    "ABS": ("int8", "int16"),
    "ADD": _ALL,
    "AVERAGE_POOL_2D": _ALL,
    "BATCH_MATMUL": ("int8", "int16"),
    "CONCATENATION": _ALL,
    "CONV_2D": _ALL,
    "DEPTHWISE_CONV_2D": _ALL,
    "DIV": _ALL,
    "EXP": ("int8", "int16"),
    "FULLY_CONNECTED": _ALL,
    "GELU": _ALL,
    "HARD_SWISH": _BYTES,
    "L2_NORMALIZATION": _BYTES,
    "LEAKY_RELU": _ALL,
    "LOG": ("int8", "int16"),
    "LOGISTIC": _ALL,
    "LOG_SOFTMAX": _BYTES,
    "MAXIMUM": _ALL,
    "MAX_POOL_2D": _ALL,
    "MEAN": _ALL,
    "MINIMUM": _ALL,
    "MUL": _ALL,
    "PAD": _ALL,
    "PRELU": _ALL,
    "QUANTIZE": _ALL,
    "REDUCE_PROD": ("int8", "int16"),
    "RELU": _ALL,
    "RELU6": _ALL,
    "RELU_N1_TO_1": _BYTES,
    "REQUANTIZE": _ALL,
    "RESIZE_BILINEAR": _ALL,
    "RESIZE_NEAREST_NEIGHBOR": _ALL,
    "RSQRT": ("int8", "int16"),
    "SOFTMAX": _ALL,
    "SQRT": ("int8", "int16"),
    "SQUARED_DIFFERENCE": ("int8",),
    "SUB": _ALL,
    "SUM": ("uint8",),  # the reference kernel reads signed integers as unsigned ones
    "TANH": _ALL,
    "TRANSPOSE_CONV": _ALL,
}
"""The element types of each operator; REQUANTIZE is QUANTIZE of integers."""


def draw_case(operator: str, dtype: str, seed: int) -> Case:
    """Return a random file with one operator."""
    draw = Draw(seed)
    image = tuple(draw.random.randint(1, 6) for _ in range(4))
    activation = draw.random.choice([0, 0, 1, 2, 3])
    output = _output(draw, operator, dtype)
    match operator:
        case "CONV_2D" | "DEPTHWISE_CONV_2D" | "TRANSPOSE_CONV":
            return _convolution(draw, operator, dtype, image, activation)
        case "FULLY_CONNECTED":
            return _fully_connected(draw, dtype, activation)
        case "ADD" | "SUB" | "MUL":
            name = operator.capitalize()
            chosen = options(name, fusedActivationFunction=activation)
            if operator != "MUL":
                chosen.potScaleInt16 = False
            other = tuple(1 if draw.chance(0.3) else size for size in image)
            inputs = [draw.quantized(image, dtype), draw.quantized(other, dtype)]
            return Case(operator, inputs, [output], chosen, 2)
        case "DIV":
            chosen = options("Div", fusedActivationFunction=activation)
            return Case(operator, _division(draw, image, dtype, output), [output], chosen, 2)
        case "SQUARED_DIFFERENCE" | "PRELU":
            other = image if draw.chance(0.5) else (1, 1, image[3])
            kind = "int8" if operator == "PRELU" and dtype == "int16" else dtype
            inputs = [draw.quantized(image, dtype), draw.quantized(other, kind)]
            return Case(operator, inputs, [output], version=2 if operator[0] == "S" else 1)
        case "BATCH_MATMUL":
            return _batch_matmul(draw, dtype)
        case "GELU":
            chosen = options("Gelu", approximate=draw.chance(0.5))
            return Case(operator, [draw.quantized(image, dtype)], [output], chosen, 2)
        case "RSQRT" | "SQRT":
            input = draw.quantized(image, dtype)
            positive = np.maximum(np.abs(input.elements.astype(np.int64)), 1)
            array = np.minimum(positive, np.iinfo(dtype).max).astype(dtype)
            input = Tensor(array, dtype, False, input.scale, (0,))
            return Case(operator, [input], [output], version=2)
        case "MAXIMUM" | "MINIMUM":
            first = draw.quantized(image, dtype)
            second = draw.quantized(image, dtype, like=first)
            return Case(operator, [first, second], [draw.output(dtype, first)], version=4)
        case "AVERAGE_POOL_2D" | "MAX_POOL_2D":
            return _pooling(draw, operator, dtype, image, activation)
        case "MEAN" | "SUM" | "REDUCE_PROD":
            chosen = options("Reducer", keepDims=draw.chance(0.5))
            axes = const(draw.axes(4))
            return Case(operator, [draw.quantized(image, dtype), axes], [output], chosen, 2)
        case "CONCATENATION":
            first = draw.quantized(image, dtype)
            second = draw.quantized(image, dtype, like=None if dtype == "uint8" else first)
            declared = output if dtype == "uint8" else draw.output(dtype, first)
            chosen = options("Concatenation", axis=draw.random.randrange(4))
            return Case(operator, [first, second], [declared], chosen, 2)
        case "PAD":
            first = draw.quantized(image, dtype)
            pads = const(draw.numpy.integers(0, 3, (4, 2)))
            return Case(operator, [first, pads], [draw.output(dtype, first)], version=2)
        case "RESIZE_BILINEAR" | "RESIZE_NEAREST_NEIGHBOR":
            return _resizing(draw, operator, dtype, image)
        case "QUANTIZE":
            reals = draw.reals(image) if draw.chance(0.5) else draw.numpy.integers(-9, 9, image) / 8
            step = output if draw.chance(0.5) else Tensor(None, dtype, False, (0.25,), (0,))
            return Case(operator, [Tensor(reals.astype(np.float32))], [step], version=2)
        case "REQUANTIZE":
            input = draw.quantized(image, dtype)
            target = dtype if dtype == "int16" else draw.random.choice(_BYTES)
            return Case("QUANTIZE", [input], [draw.output(target)], version=2)
        case "LEAKY_RELU":
            chosen = options("LeakyRelu", alpha=draw.random.uniform(0.01, 1.5))
            return Case(operator, [draw.quantized(image, dtype)], [output], chosen, 2)
        case "SOFTMAX":
            chosen = options(
                "Softmax", beta=draw.random.choice([1.0, 0.5, draw.random.uniform(0.1, 4)])
            )
            return Case(operator, [draw.quantized(image, dtype)], [output], chosen, 2)
    version = 1 if operator in ("HARD_SWISH", "RELU_N1_TO_1") else 2
    return Case(operator, [draw.quantized(image, dtype)], [output], version=version)


def _output(draw: Draw, operator: str, dtype: str) -> Tensor:
    if operator not in _OUTPUTS:
        return draw.output(dtype)
    scale, zero = _OUTPUTS[operator][dtype]
    return Tensor(None, dtype, scale=(scale,), zero_point=(zero,))


def _filter(draw: Draw, shape: tuple[int, ...], dtype: str, axis: int) -> Tensor:
    """Return weights: those of uint8 have a zero point, others a scale for each channel."""
    if dtype == "uint8":
        return draw.quantized(shape, dtype, constant=True)
    array = draw.numpy.integers(-127, 128, shape).astype("int8")
    count = shape[axis] if draw.chance(0.7) else 1
    scales = tuple(draw.scale() for _ in range(count))
    return Tensor(array, "int8", True, scales, (0,) * count, axis)


def _bias(draw: Draw, count: int, input: Tensor, filter: Tensor) -> Tensor | None:
    if draw.chance(0.2):
        return None
    scales = tuple(float(np.float32(input.scale[0]) * np.float32(s)) for s in filter.scale)
    dtype = "int64" if input.dtype == "int16" else "int32"
    array = draw.numpy.integers(-2000, 2000, count).astype(dtype)
    return Tensor(array, dtype, True, scales, (0,) * len(scales), 0)


def _sums_output(draw: Draw, input: Tensor, filter: Tensor, size: int) -> Tensor:
    """Return an output whose range is about that of sums of `size` products."""
    unit = input.scale[0] * max(filter.scale)
    reach = 2**15 if input.dtype == "int16" else 2**7
    step = unit * reach * np.sqrt(size) * draw.random.uniform(0.1, 2)
    if input.dtype == "int16":
        step *= 2**-8
    return Tensor(
        None,
        input.dtype,
        scale=(float(np.float32(step)),),
        zero_point=(draw.zero_point(input.dtype),),
    )


def _convolution(
    draw: Draw, operator: str, dtype: str, image: tuple[int, ...], activation: int
) -> Case:
    input = draw.quantized(image, dtype)
    extent = draw.random.randint(1, 3), draw.random.randint(1, 3)
    count, channels = draw.random.randint(1, 4), image[3]
    strides = {"strideH": draw.random.randint(1, 2), "strideW": draw.random.randint(1, 2)}
    padding = 0 if min(image[1:3]) < 3 or draw.chance(0.5) else 1
    if operator == "DEPTHWISE_CONV_2D":
        filter = _filter(draw, (1, *extent, channels * count), dtype, 3)
        chosen = options(
            "DepthwiseConv2D",
            padding=padding,
            depthMultiplier=count,
            fusedActivationFunction=activation,
            **strides,
        )
        count, size = channels * count, int(np.prod(extent))
    else:
        filter = _filter(draw, (count, *extent, channels), dtype, 0)
        name = "Conv2D" if operator == "CONV_2D" else "TransposeConv"
        chosen = options(name, padding=padding, fusedActivationFunction=activation, **strides)
        size = int(np.prod(extent)) * channels
    bias = _bias(draw, count, input, filter)
    output = _sums_output(draw, input, filter, size)
    inputs: list[Tensor | None] = [input, filter, bias]
    if operator == "TRANSPOSE_CONV":
        chosen.fusedActivationFunction = 0
        sides = [
            side * stride if padding == 0 else (side - 1) * stride + span
            for side, stride, span in zip(
                image[1:3], (chosen.strideH, chosen.strideW), extent, strict=True
            )
        ]
        inputs = [const([image[0], *sides, count]), filter, input, bias]
    return Case(operator, inputs, [output], chosen, 3)


def _fully_connected(draw: Draw, dtype: str, activation: int) -> Case:
    rows, size, units = (draw.random.randint(1, 9) for _ in range(3))
    input = draw.quantized((rows, size), dtype)
    weight = _filter(draw, (units, size), dtype, 0)
    bias = _bias(draw, units, input, weight)
    chosen = options("FullyConnected", fusedActivationFunction=activation)
    output = _sums_output(draw, input, weight, size)
    return Case("FULLY_CONNECTED", [input, weight, bias], [output], chosen, 4)


def _batch_matmul(draw: Draw, dtype: str) -> Case:
    rows, size, columns = (draw.random.randint(1, 6) for _ in range(3))
    adjoint_x, adjoint_y = draw.chance(0.3), draw.chance(0.3)
    left = draw.quantized((2, size, rows) if adjoint_x else (2, rows, size), dtype)
    right = draw.quantized((2, columns, size) if adjoint_y else (2, size, columns), dtype)
    chosen = options("BatchMatMul", adjX=adjoint_x, adjY=adjoint_y)
    output = _sums_output(draw, left, right, size)
    return Case("BATCH_MATMUL", [left, right], [output], chosen, 2 if dtype == "int8" else 3)


def _division(draw: Draw, shape: tuple[int, ...], dtype: str, output: Tensor) -> list[Tensor]:
    """Return a dividend and a divisor.

    LiteRT refuses a stored divisor of 0, and its kernel shifts quotients below half a step by more
    than 31 bits: there are none.
    """
    dividend, divisor = draw.quantized(shape, dtype), draw.quantized(shape, dtype)
    (first,), (second,) = dividend.zero_point, divisor.zero_point
    limits = np.iinfo(dtype)
    one = second + 1 if second + 1 not in (0, limits.max + 1) else second - 1
    below = np.where(np.isin(divisor.elements, (0, second)), one, divisor.elements)
    unit = dividend.scale[0] / (divisor.scale[0] * output.scale[0])
    quotients = (dividend.elements.astype(float) - first) / (below.astype(float) - second)
    is_small = np.abs(quotients * unit) < 1
    above = np.where(is_small, limits.max if first < 1 else limits.min, dividend.elements)
    return [
        replace(dividend, array=above.astype(dtype)),
        replace(divisor, array=np.where(is_small, one, below).astype(dtype)),
    ]


def _pooling(
    draw: Draw, operator: str, dtype: str, image: tuple[int, ...], activation: int
) -> Case:
    extent = [draw.random.randint(1, side) for side in image[1:3]]
    chosen = options(
        "Pool2D",
        padding=draw.random.randrange(2),
        strideH=draw.random.randint(1, 2),
        strideW=draw.random.randint(1, 2),
        filterHeight=extent[0],
        filterWidth=extent[1],
        fusedActivationFunction=activation,
    )
    input = draw.quantized(image, dtype)
    return Case(operator, [input], [draw.output(dtype, input)], chosen, 3)


def _resizing(draw: Draw, operator: str, dtype: str, image: tuple[int, ...]) -> Case:
    name = "ResizeBilinear" if operator == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    align = draw.chance(0.3)
    chosen = options(name, alignCorners=align, halfPixelCenters=not align and draw.chance(0.5))
    input = draw.quantized(image, dtype)
    size = const([draw.random.randint(1, 9), draw.random.randint(1, 9)])
    return Case(operator, [input, size], [draw.output(dtype, input)], chosen, 3)
