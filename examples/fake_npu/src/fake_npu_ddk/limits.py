"""What the chip cannot do, checked for one node; the compiler and the loader ask the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fake_npu_ddk.operators import CLAMPING, Operator, Settings
from fake_npu_ddk.status import NpuError, Status
from fake_npu_ddk.tensors import DataType, Tensor

MAX_RANK = 4
MAX_SIZE = 8192
"""The greatest size of an axis; the rest of a tensor's shape is a matter of memory."""
MAX_KERNEL = 7
MAX_STRIDE = 4
MAX_DILATION = 8
MAX_PAD = 63
MAX_TERMS = 16384
"""How many products of bytes an accumulator of 32 bits holds, beside a bias."""
MAX_BIAS = 2**30


def check(operator: Operator, inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> None:
    """Check one node.

    Raises:
        NpuError: the chip does not do it.
    """
    for tensor in (*inputs, output):
        check_tensor(tensor)
    least, most, rule = _RULES[operator]
    if not least <= len(inputs) <= most:
        raise NpuError(Status.INVALID_ARGUMENT, f"{operator.name} of {len(inputs)} inputs")
    if not settings.low <= settings.high:
        raise NpuError(
            Status.UNSUPPORTED_SETTING, f"bounds of {settings.low:g} and {settings.high:g}"
        )
    if operator not in CLAMPING and (settings.low, settings.high) != (-math.inf, math.inf):
        raise NpuError(Status.UNSUPPORTED_SETTING, f"bounds for {operator.name}")
    shape = rule(inputs, output, settings)
    if shape != output.shape:
        raise NpuError(
            Status.UNSUPPORTED_SHAPE, f"{operator.name} makes {shape}, not {output.shape}"
        )


def check_tensor(tensor: Tensor) -> None:
    """Check a tensor on its own.

    Raises:
        NpuError: the chip does not hold it.
    """
    if not 1 <= len(tensor.shape) <= MAX_RANK:
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{len(tensor.shape)} axes, not 1 to {MAX_RANK}")
    if not all(1 <= size <= MAX_SIZE for size in tensor.shape):
        raise NpuError(
            Status.UNSUPPORTED_SHAPE, f"sizes of {list(tensor.shape)}, not all 1 to {MAX_SIZE}"
        )
    if tensor.type is DataType.UINT8:
        if not (math.isfinite(tensor.scale) and tensor.scale > 0):
            raise NpuError(Status.UNSUPPORTED_TYPE, f"a scale of {tensor.scale:g}")
        if not 0 <= tensor.zero_point <= 255:
            raise NpuError(Status.UNSUPPORTED_TYPE, f"a zero point of {tensor.zero_point}")


Shape = tuple[int, ...]
Rule = Callable[[Sequence[Tensor], Tensor, Settings], Shape]


def _convolution(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    image, filters, bias = inputs
    _same_type(image, filters, output)
    _ranks(image, 4)
    _ranks(filters, 4)
    height, width, channels, out = filters.shape
    if channels != image.shape[3]:
        raise NpuError(
            Status.UNSUPPORTED_SHAPE, f"filters for {channels} channels, not {image.shape[3]}"
        )
    _bias(image, bias, out)
    _terms(height * width * channels)
    return (*_windows(image, (height, width), settings), out)


def _depthwise(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    image, filters, bias = inputs
    _same_type(image, filters, output)
    _ranks(image, 4)
    _ranks(filters, 3)
    height, width, channels = filters.shape
    if channels != image.shape[3]:
        raise NpuError(
            Status.UNSUPPORTED_SHAPE, f"filters for {channels} channels, not {image.shape[3]}"
        )
    _bias(image, bias, channels)
    return (*_windows(image, (height, width), settings), channels)


def _fully_connected(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    rows, weights, bias = inputs
    _same_type(rows, weights, output)
    _ranks(rows, 2)
    _ranks(weights, 2)
    if weights.shape[0] != rows.shape[1]:
        raise NpuError(
            Status.UNSUPPORTED_SHAPE, f"weights for rows of {weights.shape[0]}, not {rows.shape[1]}"
        )
    _bias(rows, bias, weights.shape[1])
    _terms(weights.shape[0])
    return (rows.shape[0], weights.shape[1])


def _pooling(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (image,) = inputs
    _same_type(image, output)
    _ranks(image, 4)
    if settings.dilations != (1, 1):
        raise NpuError(Status.UNSUPPORTED_SETTING, "dilated windows of a pooling")
    for axis in range(2):
        if max(settings.pads[2 * axis : 2 * axis + 2]) >= settings.kernel[axis]:
            raise NpuError(Status.UNSUPPORTED_SETTING, "padding as wide as the window")
    return (*_windows(image, settings.kernel, settings), image.shape[3])


def _global_pooling(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (image,) = inputs
    _same_type(image, output)
    _ranks(image, 4)
    pixels = image.shape[1] * image.shape[2]
    if pixels > MAX_TERMS:
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"the mean of {pixels}, more than {MAX_TERMS}")
    return (image.shape[0], 1, 1, image.shape[3])


def _pair(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    one, other = inputs
    _same_type(one, other, output)
    if len(one.shape) != len(other.shape):
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{len(one.shape)} axes beside {len(other.shape)}")
    pairs = list(zip(one.shape, other.shape, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{list(one.shape)} beside {list(other.shape)}")
    return tuple(max(pair) for pair in pairs)


def _alike(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    _same_type(inputs[0], output)
    return inputs[0].shape


def _look_up(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    values, table = inputs
    _bytes(values, table, output)
    if table.shape != (256,):
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"a table of {list(table.shape)}, not 256")
    return values.shape


def _reshape(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (source,) = inputs
    _same_values(source, output)
    if math.prod(source.shape) != math.prod(output.shape):
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{list(source.shape)} as {list(output.shape)}")
    return output.shape


def _transpose(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (source,) = inputs
    _same_values(source, output)
    if sorted(settings.order) != list(range(len(source.shape))):
        raise NpuError(Status.UNSUPPORTED_SETTING, f"an order of {list(settings.order)}")
    return tuple(source.shape[axis] for axis in settings.order)


def _concatenate(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    _same_type(*inputs, output)
    axis, first = settings.axis, inputs[0].shape
    if not 0 <= axis < len(first):
        raise NpuError(Status.UNSUPPORTED_SETTING, f"axis {axis} of {len(first)}")
    rests = {(shape[:axis], shape[axis + 1 :]) for shape in (part.shape for part in inputs)}
    if len(rests) != 1:
        shapes = [list(part.shape) for part in inputs]
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{shapes} along axis {axis}")
    whole = sum(part.shape[axis] for part in inputs)
    return (*first[:axis], whole, *first[axis + 1 :])


def _pad(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (source,) = inputs
    _same_values(source, output)
    pads = settings.pads
    if len(pads) != 2 * len(source.shape):
        raise NpuError(Status.UNSUPPORTED_SETTING, f"pads of {list(pads)}")
    _pads(pads)
    return tuple(
        size + before + after
        for size, before, after in zip(source.shape, pads[::2], pads[1::2], strict=True)
    )


def _softmax(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (source,) = inputs
    _same_type(source, output)
    if source.type is not DataType.FLOAT16:
        raise NpuError(Status.UNSUPPORTED_TYPE, source.type.name)
    return source.shape


def _convert(inputs: Sequence[Tensor], output: Tensor, settings: Settings) -> Shape:
    (source,) = inputs
    if {source.type, output.type} != {DataType.UINT8, DataType.FLOAT16}:
        raise NpuError(Status.UNSUPPORTED_TYPE, f"{source.type.name} to {output.type.name}")
    return source.shape


_RULES: dict[Operator, tuple[int, int, Rule]] = {
    Operator.CONV_2D: (3, 3, _convolution),
    Operator.DEPTHWISE_CONV_2D: (3, 3, _depthwise),
    Operator.FULLY_CONNECTED: (3, 3, _fully_connected),
    Operator.AVERAGE_POOL_2D: (1, 1, _pooling),
    Operator.MAX_POOL_2D: (1, 1, _pooling),
    Operator.GLOBAL_AVERAGE_POOL: (1, 1, _global_pooling),
    Operator.ADD: (2, 2, _pair),
    Operator.SUBTRACT: (2, 2, _pair),
    Operator.MULTIPLY: (2, 2, _pair),
    Operator.RESCALE: (1, 1, _alike),
    Operator.LOOK_UP: (2, 2, _look_up),
    Operator.RESHAPE: (1, 1, _reshape),
    Operator.TRANSPOSE: (1, 1, _transpose),
    Operator.CONCATENATE: (1, 16, _concatenate),
    Operator.PAD: (1, 1, _pad),
    Operator.SOFTMAX: (1, 1, _softmax),
    Operator.CONVERT: (1, 1, _convert),
}
"""For each operator how many inputs it has, at least and at most, and what it makes of them."""


def _windows(image: Tensor, kernel: tuple[int, int], settings: Settings) -> Shape:
    """Batch, height and width of what windows make of an image."""
    if not all(1 <= size <= MAX_KERNEL for size in kernel):
        raise NpuError(
            Status.UNSUPPORTED_SETTING,
            f"a kernel of {kernel[0]} by {kernel[1]}, more than {MAX_KERNEL} by {MAX_KERNEL}",
        )
    for name, most, numbers in (
        ("strides", MAX_STRIDE, settings.strides),
        ("dilations", MAX_DILATION, settings.dilations),
    ):
        if not all(1 <= number <= most for number in numbers):
            raise NpuError(
                Status.UNSUPPORTED_SETTING, f"{name} of {list(numbers)}, not all 1 to {most}"
            )
    if len(settings.pads) != 4:
        raise NpuError(Status.UNSUPPORTED_SETTING, f"pads of {list(settings.pads)}")
    _pads(settings.pads)
    counts = []
    for axis in range(2):
        reach = (kernel[axis] - 1) * settings.dilations[axis] + 1
        room = image.shape[1 + axis] + sum(settings.pads[2 * axis : 2 * axis + 2]) - reach
        if room < 0:
            raise NpuError(Status.UNSUPPORTED_SHAPE, "an image smaller than the window")
        counts.append(room // settings.strides[axis] + 1)
    return (image.shape[0], *counts)


def _pads(pads: Sequence[int]) -> None:
    if not all(0 <= pad <= MAX_PAD for pad in pads):
        raise NpuError(Status.UNSUPPORTED_SETTING, f"pads of {list(pads)}, not all 0 to {MAX_PAD}")


def _ranks(tensor: Tensor, rank: int) -> None:
    if len(tensor.shape) != rank:
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"{len(tensor.shape)} axes, not {rank}")


def _terms(count: int) -> None:
    if count > MAX_TERMS:
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"sums of {count} products, more than {MAX_TERMS}")


def _bias(image: Tensor, bias: Tensor, channels: int) -> None:
    wanted = DataType.INT32 if image.type is DataType.UINT8 else image.type
    if bias.type is not wanted:
        raise NpuError(Status.UNSUPPORTED_TYPE, f"a bias of {bias.type.name}, not {wanted.name}")
    if bias.shape != (channels,):
        raise NpuError(Status.UNSUPPORTED_SHAPE, f"a bias of {list(bias.shape)}, not {channels}")


def _same_type(*tensors: Tensor) -> None:
    types = {tensor.type for tensor in tensors}
    if len(types) > 1 or DataType.INT32 in types:
        raise NpuError(
            Status.UNSUPPORTED_TYPE, " beside ".join(tensor.type.name for tensor in tensors)
        )


def _bytes(*tensors: Tensor) -> None:
    _same_type(*tensors)
    if tensors[0].type is not DataType.UINT8:
        raise NpuError(Status.UNSUPPORTED_TYPE, tensors[0].type.name)


def _same_values(source: Tensor, output: Tensor) -> None:
    _same_type(source, output)
    if (source.scale, source.zero_point) != (output.scale, output.zero_point):
        raise NpuError(Status.UNSUPPORTED_TYPE, "another quantization for what is only moved")
