"""What is drawn for layers with weights: hybrid and quantized ones, and recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.single_operator import CASES, Case, Draw, Tensor, cases, const, options

_TANH = 4
_LSTM_OPTIONS = {
    "LSTM": "LSTM",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
}


def _unchanged(model: Any) -> None:
    """Leave a file as it is."""


@dataclass(frozen=True)
class PatchedCase(Case):
    """A file with one operator whose content is changed before it is written."""

    patch: Callable[[Any], None] = _unchanged

    def file(self, *, dynamic: bool = False) -> bytes:
        model = schema.ModelT.InitFromPackedBuf(super().file(dynamic=dynamic))
        self.patch(model)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def _weights(draw: Draw, shape: tuple[int, ...], axis: int | None = None) -> Tensor:
    """Return constant int8 weights, symmetric per tensor or along an axis."""
    count = 1 if axis is None else shape[axis]
    array = draw.numpy.integers(-127, 128, shape).astype(np.int8)
    scales = tuple(draw.scale() for _ in range(count))
    return Tensor(array, "int8", True, scales, (0,) * count, axis or 0)


def _constant(draw: Draw, shape: tuple[int, ...]) -> Tensor:
    return Tensor(draw.reals(shape, -1, 1), constant=True)


def _maybe_hybrid(draw: Draw, shape: tuple[int, ...], hybrid: bool) -> Tensor:
    return _weights(draw, shape) if hybrid else _constant(draw, shape)


@cases("FULLY_CONNECTED (hybrid)")
def hybrid_fully_connected(draw: Draw, _: str) -> Case:
    units, size = draw.random.randint(1, 5), draw.random.randint(1, 9)
    chosen = options(
        "FullyConnected",
        keepNumDims=draw.chance(0.5),
        asymmetricQuantizeInputs=draw.chance(0.5),
        fusedActivationFunction=draw.random.choice([0, 1, 3]),
    )
    input = Tensor(draw.reals((*draw.shape(1, 2), size)))
    inputs = [input, _weights(draw, (units, size)), _constant(draw, (units,))]
    return Case("FULLY_CONNECTED", inputs, [Tensor()], chosen, 9)


@cases("CONV_2D (hybrid)", "DEPTHWISE_CONV_2D (hybrid)")
def hybrid_convolution(draw: Draw, key: str) -> Case:
    channels, count = draw.random.randint(1, 4), draw.random.randint(1, 4)
    kernel = draw.random.randint(1, 3), draw.random.randint(1, 3)
    image = Tensor(draw.reals((draw.random.randint(1, 2), 5, 6, channels)))
    padding = {"padding": draw.random.randrange(2), "strideH": 1, "strideW": 2}
    if key.startswith("DEPTHWISE"):
        filter = _weights(draw, (1, *kernel, channels * count), 3)
        chosen = options("DepthwiseConv2D", depthMultiplier=count, **padding)
        inputs = [image, filter, _constant(draw, (channels * count,))]
        return Case("DEPTHWISE_CONV_2D", inputs, [Tensor()], chosen, 6)
    filter = _weights(draw, (count, *kernel, channels), draw.random.choice([None, 0]))
    inputs = [image, filter, _constant(draw, (count,))]
    return Case("CONV_2D", inputs, [Tensor()], options("Conv2D", **padding), 5)


@cases("CONV_3D", "CONV_3D_TRANSPOSE")
def convolution_3d(draw: Draw, operator: str) -> Case:
    channels, count = draw.random.randint(1, 3), draw.random.randint(1, 3)
    kernel = tuple(draw.random.randint(1, 3) for _ in range(3))
    stride, padding = draw.random.randint(1, 2), draw.random.randrange(2)
    chosen = options("Conv3D", padding=padding)
    chosen.strideD = chosen.strideH = chosen.strideW = stride
    image = Tensor(draw.reals((1, 3, 4, 4, channels)))
    bias = _constant(draw, (count,)) if draw.chance(0.5) else None
    if operator == "CONV_3D":
        filter = _constant(draw, (*kernel, channels, count))
        return Case(operator, [image, filter, bias], [Tensor()], chosen)
    sizes = [
        side * stride if padding == 0 else (side - 1) * stride + extent
        for side, extent in zip((3, 4, 4), kernel, strict=True)
    ]
    filter = _constant(draw, (*kernel, count, channels))
    inputs = [const([1, *sizes, count]), filter, image, bias]
    return Case(operator, inputs, [Tensor()], chosen)


@cases(*_LSTM_OPTIONS)
def lstm(draw: Draw, operator: str) -> Case:
    """Draw a cell with any of: coupled gates, peepholes, projection, clipping, normalization."""
    coupled, hybrid, projected = draw.chance(0.3), draw.chance(0.3), draw.chance(0.3)
    batch, size, units = (draw.random.randint(1, 4) for _ in range(3))
    outputs = draw.random.randint(1, 3) if projected else units

    def gates(shape: tuple[int, ...], integers: bool = False) -> list[Tensor | None]:
        weights = [_maybe_hybrid(draw, shape, integers) for _ in range(4)]
        return [None if coupled else weights[0], *weights[1:]]

    inputs: list[Tensor | None] = [*gates((units, size), hybrid), *gates((units, outputs), hybrid)]
    peepholes: list[Tensor | None] = [None, None, None]
    if draw.chance(0.3):
        input_gate, *others = (_maybe_hybrid(draw, (units,), hybrid) for _ in range(3))
        peepholes = [None if coupled else input_gate, *others]
    inputs += [*peepholes, *gates((units,))]
    inputs.append(_maybe_hybrid(draw, (outputs, units), hybrid) if projected else None)
    inputs.append(_constant(draw, (outputs,)) if projected and draw.chance(0.5) else None)
    inputs += [
        Tensor(np.zeros((batch, count), np.float32), variable=True) for count in (outputs, units)
    ]
    if draw.chance(0.2):
        inputs += gates((units,))
    chosen = options(_LSTM_OPTIONS[operator], fusedActivationFunction=_TANH)
    chosen.cellClip, chosen.projClip = draw.random.choice([0.0, 0.5]), 0.0
    chosen.asymmetricQuantizeInputs = draw.chance(0.5)
    shape: tuple[int, ...] = (batch, size)
    if operator != "LSTM":
        chosen.timeMajor = draw.chance(0.5)
        steps = draw.random.randint(1, 4)
        shape = (steps, batch, size) if chosen.timeMajor else (batch, steps, size)
    input = Tensor(draw.reals(shape, -1, 1))
    return Case(operator, [input, *inputs], [Tensor()], chosen, 3 if hybrid else 1)


@cases("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN")
def rnn(draw: Draw, operator: str) -> Case:
    hybrid = draw.chance(0.3) and not operator.startswith("BI")
    batch, steps, size, units = (draw.random.randint(1, 4) for _ in range(4))
    state = Tensor(np.zeros((batch, units), np.float32), variable=True)

    def direction() -> list[Tensor | None]:
        matrices = [_maybe_hybrid(draw, (units, count), hybrid) for count in (size, units)]
        return [*matrices, _constant(draw, (units,)), state]

    activation = draw.random.choice([0, 1, 3, _TANH])
    version = 2 if hybrid else 1
    if operator == "RNN":
        chosen = options("RNN", fusedActivationFunction=activation)
        inputs = [Tensor(draw.reals((batch, size), -1, 1)), *direction()]
        return Case(operator, inputs, [Tensor()], chosen, version)
    time_major = draw.chance(0.5)
    shape = (steps, batch, size) if time_major else (batch, steps, size)
    input = Tensor(draw.reals(shape, -1, 1))
    if operator.startswith("UNI"):
        chosen = options("SequenceRNN", fusedActivationFunction=activation, timeMajor=time_major)
        return Case(operator, [input, *direction()], [Tensor()], chosen, version)
    merged = draw.chance(0.5)
    chosen = options(
        "BidirectionalSequenceRNN",
        fusedActivationFunction=activation,
        timeMajor=time_major,
        mergeOutputs=merged,
    )
    inputs = [input, *direction(), *direction(), None, None, None]
    return Case(operator, inputs, [Tensor()] if merged else [Tensor(), Tensor()], chosen)


@cases("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(draw: Draw, operator: str) -> Case:
    """Draw both directions; LiteRT reads beyond the state of several merged batch-major rows."""
    coupled, merged, time_major = (draw.chance(0.5) for _ in range(3))
    batch = 1 if merged and not time_major else draw.random.randint(1, 3)
    steps, size, units = (draw.random.randint(1, 4) for _ in range(3))
    inputs: list[Tensor | None] = []
    for _ in range(2):
        for count in (size, units):
            inputs += [_constant(draw, (units, count)) for _ in range(4)]
        inputs += [None] * 3 + [_constant(draw, (units,)) for _ in range(4)] + [None] * 2
        for gate in (0, 4, 11) if coupled else ():
            inputs[len(inputs) - 17 + gate] = None
    state = Tensor(np.zeros((batch, units), np.float32), variable=True)
    chosen = options(
        "BidirectionalSequenceLSTM",
        fusedActivationFunction=_TANH,
        timeMajor=time_major,
        mergeOutputs=merged,
    )
    shape = (steps, batch, size) if time_major else (batch, steps, size)
    inputs = [Tensor(draw.reals(shape, -1, 1)), *inputs, *[state] * 4, *[None] * 9]
    return Case(operator, inputs, [Tensor()] if merged else [Tensor(), Tensor()], chosen)


@cases("SVDF")
def svdf(draw: Draw, operator: str) -> Case:
    hybrid = draw.chance(0.4)
    batch, size, memory = (draw.random.randint(1, 4) for _ in range(3))
    rank, units = draw.random.randint(1, 2), draw.random.randint(1, 3)
    filters = rank * units
    inputs = [
        Tensor(draw.reals((batch, size), -1, 1)),
        _maybe_hybrid(draw, (filters, size), hybrid),
        _maybe_hybrid(draw, (filters, memory), hybrid),
        _constant(draw, (units,)) if draw.chance(0.5) else None,
        Tensor(np.zeros((batch, filters * memory), np.float32), variable=True),
    ]
    activation = draw.random.choice([0, 1, 3])
    chosen = options("SVDF", rank=rank, fusedActivationFunction=activation)
    return Case(operator, inputs, [Tensor()], chosen, 2 if hybrid else 1)


@cases("SVDF (quantized)")
def quantized_svdf(draw: Draw, _: str) -> Case:
    """Draw a layer on int8 with a state of int16; LiteRT has only RELU here."""
    batch, size, memory = (draw.random.randint(1, 4) for _ in range(3))
    rank, units = draw.random.randint(1, 2), draw.random.randint(1, 3)
    filters = rank * units
    input = draw.quantized((batch, size), "int8")
    feature = _weights(draw, (filters, size))
    state = Tensor(
        np.zeros((batch, filters * memory), np.int16),
        "int16",
        scale=(float(np.float32(input.scale[0] * feature.scale[0] * draw.random.uniform(1, 9))),),
        zero_point=(0,),
        variable=True,
    )
    time = draw.quantized((filters, memory), "int16", constant=True)
    bias = Tensor(draw.integers((units,), "int32", -9999, 9999), "int32", True)
    unit = state.scale[0] * time.scale[0] * draw.random.uniform(2**17, 2**20)
    output = Tensor(
        None, "int8", scale=(float(np.float32(unit)),), zero_point=(draw.zero_point("int8"),)
    )
    chosen = options("SVDF", rank=rank, fusedActivationFunction=1)
    inputs = [input, feature, time, bias if draw.chance(0.7) else None, state]
    return Case("SVDF", inputs, [output], chosen, 3)


@cases("LSTM (quantized)", "UNIDIRECTIONAL_SEQUENCE_LSTM (quantized)")
def quantized_lstm(draw: Draw, key: str) -> Case:
    """Draw a cell on int8 with a cell state of int16.

    LiteRT's kernel takes the size of the output for that of the cell with peepholes.
    """
    operator = key.split()[0]
    coupled, projected, peepholed = draw.chance(0.3), draw.chance(0.3), draw.chance(0.3)
    batch, size, units, steps = (draw.random.randint(1, 4) for _ in range(4))
    outputs = draw.random.randint(1, 4) if projected and not peepholed else units
    input = draw.quantized((batch, size), "int8")
    state = draw.output("int8")
    states = [
        replace(state, array=np.full((batch, outputs), 0, np.int8), variable=True),
        Tensor(
            np.zeros((batch, units), np.int16),
            "int16",
            scale=(2.0 ** -draw.random.randint(11, 15),),
            zero_point=(0,),
            variable=True,
        ),
    ]

    def weights(rows: int, columns: int, unit: float) -> Tensor:
        scale = draw.random.uniform(0.5, 8) / (unit * 128**2 * np.sqrt(columns))
        tensor = _weights(draw, (rows, columns))
        return replace(tensor, scale=(float(np.float32(scale)),))

    def gates(draw_one: Callable[[int], Tensor]) -> list[Tensor | None]:
        return [None if coupled and gate == 0 else draw_one(gate) for gate in range(4)]

    def peephole(gate: int) -> Tensor:
        return replace(
            draw.quantized((units,), "int16", constant=True),
            scale=(2**-15 * draw.random.uniform(0.5, 2),),
            zero_point=(0,),
        )

    input_weights = gates(lambda _: weights(units, size, input.scale[0]))
    inputs: list[Tensor | None] = [input, *input_weights]
    inputs += gates(lambda _: weights(units, outputs, state.scale[0]))
    inputs += [*gates(peephole)[:2], peephole(3)] if peepholed else [None] * 3
    inputs += gates(lambda _: Tensor(draw.integers((units,), "int32", -9999, 9999), "int32", True))
    product = draw.output("int8") if projected else state
    if projected:
        inputs.append(weights(outputs, units, product.scale[0] / state.scale[0] / 128))
        inputs.append(Tensor(draw.integers((outputs,), "int32", -999, 999), "int32", True))
    else:
        inputs += [None, None]
    inputs += [*states, *[None] * 4]
    name = "LSTM" if operator == "LSTM" else "UnidirectionalSequenceLSTM"
    chosen = options(name, fusedActivationFunction=_TANH)
    chosen.cellClip = draw.random.choice([0.0, 0.3, 10.0])
    chosen.projClip = draw.random.choice([0.0, 50 * state.scale[0]]) if projected else 0.0
    if operator != "LSTM":
        chosen.timeMajor = draw.chance(0.5)
        shape = (steps, batch, size) if chosen.timeMajor else (batch, steps, size)
        inputs[0] = replace(
            draw.quantized(shape, "int8"), scale=input.scale, zero_point=input.zero_point
        )

    intermediates = [product] * 5
    if draw.chance(0.3):
        inputs[20:24] = gates(peephole)
        intermediates[:4] = [draw.output("int16") for _ in range(4)]

    def patch(model: Any) -> None:
        """Add the intermediate tensors; without layer normalization, only the last is used."""
        graph = model.subgraphs[0]
        for number, intermediate in enumerate(intermediates):
            tensor = schema.TensorT()
            tensor.name, tensor.type, tensor.shape = f"intermediate{number}", 9, []
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = list(intermediate.scale)
            tensor.quantization.zeroPoint = list(intermediate.zero_point)
            graph.tensors.append(tensor)
        count = len(graph.tensors)
        graph.operators[0].intermediates = list(range(count - 5, count))

    version = 4 if operator == "LSTM" else 3
    return PatchedCase(operator, inputs, [state], chosen, version, patch=patch)


_ACTIVATIONS = ("int8", "int8", "uint8", "int16")


def _quantized_layer(draw: Draw, shape: tuple[int, ...], channel_axis: int, dtype: str) -> Tensor:
    """Return weights for activations of a type: asymmetric bytes, or symmetric integers."""
    if dtype == "uint8":
        return draw.quantized(shape, "uint8", constant=True)
    return _weights(draw, shape, draw.random.choice([None, channel_axis]))


def _bias(draw: Draw, input: Tensor, weights: Tensor, count: int) -> Tensor | None:
    """Return a bias of the accumulators' type, in their scale."""
    if draw.chance(0.2):
        return None
    dtype = "int64" if input.dtype == "int16" else "int32"
    scales = [float(np.float32(input.scale[0]) * np.float32(scale)) for scale in weights.scale]
    array = draw.integers((count,), dtype, -3000, 3000)
    return Tensor(array, dtype, True, tuple(scales), (0,) * len(scales))


def _output(draw: Draw, input: Tensor, weights: Tensor) -> Tensor:
    """Return an output whose range is that of some products."""
    scale = float(np.float32(input.scale[0] * max(weights.scale) * 40 * 2 ** draw.random.random()))
    if input.dtype == "int16":
        scale /= 256
    return Tensor(None, input.dtype, scale=(scale,), zero_point=(draw.zero_point(input.dtype),))


@cases("CONV_2D (quantized)", "DEPTHWISE_CONV_2D (quantized)", "TRANSPOSE_CONV (quantized)")
def quantized_convolution(draw: Draw, key: str) -> Case:
    operator = key.split()[0]
    dtype = draw.random.choice(_ACTIVATIONS)
    channels, count = draw.random.randint(1, 4), draw.random.randint(1, 4)
    kernel = draw.random.randint(1, 3), draw.random.randint(1, 3)
    image = draw.quantized((draw.random.randint(1, 2), 5, 6, channels), dtype)
    fields = {"padding": draw.random.randrange(2), "strideH": 1, "strideW": 2}
    fields["fusedActivationFunction"] = draw.random.choice([0, 1, 3])
    if operator == "DEPTHWISE_CONV_2D":
        weights = _quantized_layer(draw, (1, *kernel, channels * count), 3, dtype)
        bias = _bias(draw, image, weights, channels * count)
        chosen = options("DepthwiseConv2D", depthMultiplier=count, **fields)
        return Case(operator, [image, weights, bias], [_output(draw, image, weights)], chosen, 3)
    weights = _quantized_layer(draw, (count, *kernel, channels), 0, dtype)
    bias, output = _bias(draw, image, weights, count), _output(draw, image, weights)
    if operator == "CONV_2D":
        chosen = options("Conv2D", **fields)
        return Case(operator, [image, weights, bias], [output], chosen, 3)
    assert image.array is not None
    batch, height, width, _ = image.array.shape
    sizes = [height, width * 2]
    if fields["padding"]:
        sizes = [height - 1 + kernel[0], (width - 1) * 2 + kernel[1]]
    chosen = options("TransposeConv", **fields)
    inputs = [const([batch, *sizes, count]), weights, image, bias]
    return Case(operator, inputs, [output], chosen, 4)


@cases("FULLY_CONNECTED (quantized)")
def quantized_fully_connected(draw: Draw, _: str) -> Case:
    units, size = draw.random.randint(1, 5), draw.random.randint(1, 9)
    dtype = draw.random.choice(_ACTIVATIONS)
    input = draw.quantized((*draw.shape(1, 2), size), dtype)
    weights = _quantized_layer(draw, (units, size), 0, dtype)
    bias = _bias(draw, input, weights, units)
    activation = draw.random.choice([0, 1, 3])
    chosen = options(
        "FullyConnected", keepNumDims=draw.chance(0.5), fusedActivationFunction=activation
    )
    return Case(
        "FULLY_CONNECTED", [input, weights, bias], [_output(draw, input, weights)], chosen, 4
    )


@cases("BATCH_MATMUL (quantized)")
def quantized_batch_matmul(draw: Draw, _: str) -> Case:
    """Draw factors whose products fit into LiteRT's accumulators of 32 bits."""
    dtype = draw.random.choice(["int8", "int8", "int16"])
    rows, inner, columns = draw.shape(3, 3, 4)
    adjoint = draw.chance(0.3)
    shapes = (2, rows, inner), (2, columns, inner) if adjoint else (2, inner, columns)
    x, y = (
        replace(draw.quantized(shape, dtype), array=draw.integers(shape, dtype, -999, 999))
        if dtype == "int16"
        else draw.quantized(shape, dtype)
        for shape in shapes
    )
    chosen = options("BatchMatMul", adjY=adjoint)
    return Case("BATCH_MATMUL", [x, y], [_output(draw, x, y)], chosen, 2)


@cases("RESIZE_BILINEAR (quantized)", "RESIZE_NEAREST_NEIGHBOR (quantized)")
def quantized_resize(draw: Draw, key: str) -> Case:
    operator = key.split()[0]
    name = "ResizeBilinear" if operator == "RESIZE_BILINEAR" else "ResizeNearestNeighbor"
    align = draw.chance(0.3)
    chosen = options(name, alignCorners=align, halfPixelCenters=not align and draw.chance(0.5))
    size = const([draw.random.randint(1, 10), draw.random.randint(1, 10)])
    image = draw.quantized((1, *draw.shape(2, 2), 2), draw.random.choice(["int8", "uint8"]))
    return Case(operator, [image, size], [draw.output(image.dtype, image)], chosen, 3)


@cases("AVERAGE_POOL_2D (quantized)", "MAX_POOL_2D (quantized)")
def quantized_pooling(draw: Draw, key: str) -> Case:
    image = draw.quantized((1, 5, 6, 2), draw.random.choice(_ACTIVATIONS))
    chosen = options("Pool2D", padding=draw.random.randrange(2), strideH=1, strideW=2)
    chosen.filterHeight, chosen.filterWidth = draw.random.randint(1, 3), draw.random.randint(1, 3)
    chosen.fusedActivationFunction = draw.random.choice([0, 1, 3])
    return Case(key.split()[0], [image], [draw.output(image.dtype, image)], chosen, 3)


LAYERS = tuple(name for name in CASES if name not in OPERATORS)
