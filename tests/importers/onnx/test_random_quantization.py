"""Random quantized operators of ONNX and of ONNX Runtime, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime import GraphOptimizationLevel, SessionOptions
from tests.exact_onnxruntime import exact_session

import crosschip

Array = NDArray[Any]

MICROSOFT = "com.microsoft"
DEVICES = (["onnxruntime"], ["openvino", "reference"], ["reference"])

PAIRS = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
"""The types that ONNX Runtime multiplies with each other."""


class Case:
    """A random model in the making.

    Attributes:
        random: what is drawn from.
        opset: the version of the standard operators.
        steps: so much may outputs differ: one step of their scale.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice([13, 17, 19, 21]))
        self.steps: dict[str, float] = {}
        self.feed: dict[str, Array] = {}
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._outputs: list[str] = []

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def bytes_(self, dtype: Any, *shape: int) -> Array:
        limits = np.iinfo(dtype)
        return self.random.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def input(self, array: Array) -> str:
        name = f"x{len(self.feed)}"
        self.feed[name] = array
        return name

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def scale(self, *shape: int, dtype: Any = np.float32) -> str:
        drawn = np.exp2(self.random.uniform(-6, -2, shape))
        return self.constant(np.asarray(drawn, dtype))

    def node(self, kind: str, *inputs: str, domain: str = "", count: int = 1, **named: Any) -> str:
        outputs = [f"v{len(self._nodes)}"] + [f"v{len(self._nodes)}_{i}" for i in range(1, count)]
        node = helper.make_node(kind, inputs, outputs, domain=domain, **named)
        self._nodes.append(node)
        return outputs[0]

    def output(self, name: str, step: float) -> None:
        self._outputs.append(name)
        self.steps[name] = step

    def step_of(self, scale: str) -> float:
        (found,) = (t for t in self._constants if t.name == scale)
        return float(numpy_helper.to_array(found).max())

    def model(self) -> ModelProto:
        """Return the model, in which each size of an input may be open."""
        inputs = []
        for name, array in self.feed.items():
            shape = [f"{name}_{i}" if self.chance(0.1) else n for i, n in enumerate(array.shape)]
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            inputs.append(helper.make_tensor_value_info(name, kind, shape))
        untyped = [helper.make_empty_tensor_value_info(name) for name in self._outputs]
        graph = helper.make_graph(self._nodes, "random", inputs, untyped, self._constants)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=imports)


def quantized_input(case: Case, shape: tuple[int, ...], dtype: Any) -> tuple[str, str, str]:
    """Return a tensor of bytes with scale and zero point, quantized in the model or as input."""
    scale = case.scale()
    zero = case.constant(np.array(case.random.integers(np.iinfo(dtype).max), dtype))
    if case.chance(0.3):
        return case.input(case.bytes_(dtype, *shape)), scale, zero
    reals = case.random.normal(scale=2, size=shape).astype(np.float32)
    return case.node("QuantizeLinear", case.input(reals), scale, zero), scale, zero


def finished(case: Case, integers: str, scale: str, zero: str) -> None:
    """Hand the integers out as they are, dequantized, or as other numbers."""
    step = case.step_of(scale)
    ending = case.one_of("as they are", "reals", "both", "cast")
    if ending in ("as they are", "both"):
        case.output(integers, 1)
    if ending in ("reals", "both"):
        case.output(case.node("DequantizeLinear", integers, scale, zero), step)
    if ending == "cast":
        case.output(case.node("Cast", integers, to=TensorProto.FLOAT), 1)


def conversions(case: Case) -> None:
    shape = case.one_of((2, 3, 4), (3,), (), (2, 0, 3), (1, 3, 2, 2))
    kinds: list[type[np.integer]] = [np.uint8, np.int8]
    kinds += [np.uint16, np.int16] if case.opset >= 21 else []
    dtype, axis = case.one_of(*kinds), 0
    along: tuple[int, ...] = ()
    if shape and case.chance(0.5):
        axis = int(case.random.integers(-len(shape), len(shape)))
        along = (shape[axis],)
    half = case.opset >= 19 and case.chance(0.3)
    float_ = np.float16 if half else np.float32
    scale = case.scale(*along, dtype=float_)
    zero = case.constant(case.bytes_(dtype, *along)) if case.chance(0.7) else ""
    named: dict[str, Any] = {"axis": axis} if along else {}
    reals = case.random.normal(scale=3, size=shape).astype(float_)
    if zero or dtype is np.uint8:
        made = case.node("QuantizeLinear", case.input(reals), scale, zero, **named)
    else:
        made = case.input(case.bytes_(dtype, *shape))
    case.output(made, 1)
    step = 1.0 if 0 in along else case.step_of(scale)
    case.output(case.node("DequantizeLinear", made, scale, zero, **named), step)


def moved(case: Case) -> None:
    """Integers are moved, chosen among, joined and compared, whatever they stand for."""
    dtype = case.one_of(np.uint8, np.int8)
    name, scale, zero = quantized_input(case, (2, 3, 4, 4), dtype)
    kind = case.one_of("Reshape", "Transpose", "MaxPool", "Concat", "Gather", "Equal", "Max", "Pad")
    if kind == "Reshape":
        name = case.node(kind, name, case.constant(np.array([2, -1])))
    elif kind == "Transpose":
        name = case.node(kind, name, perm=[0, 2, 3, 1])
    elif kind == "MaxPool":
        name = case.node(kind, name, kernel_shape=[2, 2], strides=[2, 2])
    elif kind == "Concat":
        name = case.node(kind, name, quantized_input(case, (2, 3, 4, 4), dtype)[0], axis=1)
    elif kind == "Gather":
        name = case.node(kind, name, case.constant(np.array([2, 0])), axis=1)
    elif kind == "Max":
        name = case.node(kind, name, quantized_input(case, (2, 3, 4, 4), dtype)[0])
    elif kind == "Pad":
        pads = case.constant(np.array([0, 0, 1, 0, 0, 0, 0, 1]))
        name = case.node(kind, name, pads, case.constant(np.array(3, dtype)))
    else:
        other = case.constant(case.bytes_(dtype, 1))
        case.output(case.node("Equal", name, other), 0)
        return
    finished(case, name, scale, zero)


def convolution(case: Case) -> None:
    image, filters = case.one_of(*PAIRS)
    group = case.one_of(1, 1, 2, 4)
    out = 4 * case.one_of(1, 2)
    name, scale, zero = quantized_input(case, (case.one_of(1, 2), 4, 6, 5), image)
    size = case.one_of(1, 2, 3)
    along = (out,) if case.chance(0.5) else ()
    weights = case.constant(case.bytes_(filters, out, 4 // group, size, size))
    zeros = np.zeros(along, filters) if along or case.chance(0.5) else np.array(3, filters)
    inputs = [name, scale, zero, weights, case.scale(*along), case.constant(zeros)]
    made, end = case.scale(), case.constant(np.array(5, image))
    inputs += [made, end]
    if case.chance(0.6):
        inputs.append(case.constant(case.random.integers(-999, 999, out).astype(np.int32)))
    named: dict[str, Any] = {"group": group, "strides": [case.one_of(1, 2)] * 2}
    if case.chance(0.5):
        named["pads"] = [1, 0, 1, 1]
    finished(case, case.node("QLinearConv", *inputs, **named), made, end)


def matrices(case: Case) -> None:
    left, right = case.one_of(*PAIRS)
    rows, depth, columns = case.one_of(1, 3), case.one_of(2, 9), case.one_of(2, 5)
    batch = (2,) if case.chance(0.3) else ()
    name, scale, zero = quantized_input(case, (*batch, rows, depth), left)
    along = (columns,) if case.chance(0.4) else ()
    other = case.constant(case.bytes_(right, depth, columns))
    zeros = np.full(along, 0 if along else 3, right)
    made, end = case.scale(), case.constant(np.array(5, left))
    inputs = [name, scale, zero, other, case.scale(*along), case.constant(zeros), made, end]
    finished(case, case.node("QLinearMatMul", *inputs), made, end)


def sums(case: Case) -> None:
    """Products in int32, of bytes that are given or quantized by their range."""
    zero = ""
    if case.chance(0.5):
        reals = case.random.normal(size=(2, 4, 6)).astype(np.float32)
        name = case.node("DynamicQuantizeLinear", case.input(reals), count=3)
        zero = f"{name}_2"
    else:
        name = case.input(case.bytes_(case.one_of(np.uint8, np.int8), 2, 4, 6))
    dtype = case.one_of(np.uint8, np.int8)
    along = (3,) if case.chance(0.4) else ()
    other = case.constant(case.bytes_(dtype, 6, 3))
    zeros = case.constant(case.bytes_(dtype, *along)) if case.chance(0.6) else ""
    case.output(case.node("MatMulInteger", name, other, zero, zeros), 0)


def convolved(case: Case) -> None:
    dtype = case.one_of(np.uint8, np.int8)
    name = case.input(case.bytes_(np.uint8, 1, 3, 6, 5))
    weights = case.constant(case.bytes_(dtype, 4, 3, 3, 2))
    zeros = [
        case.constant(case.bytes_(kind)) if case.chance(0.6) else "" for kind in (np.uint8, dtype)
    ]
    pads = [1, 0, 2, 1] if case.chance(0.5) else [0] * 4
    case.output(case.node("ConvInteger", name, weights, *zeros, pads=pads), 0)


def contributed(case: Case) -> None:
    """ONNX Runtime's own quantized operators."""
    dtype = case.one_of(np.uint8, np.int8)
    first = quantized_input(case, (2, 3, 4, 4), dtype)
    made = case.scale(), case.constant(np.array(case.random.integers(100), dtype))
    kind = case.one_of(
        *("Add", "Mul", "AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid"),
        *("Softmax", "Concat", "Where"),
    )
    named: dict[str, Any] = {}
    inputs = [*first, *made]
    if kind in ("Add", "Mul"):
        inputs = [*first, *quantized_input(case, (1, 3, 1, 4), dtype), *made]
    elif kind == "AveragePool":
        named = {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}
    elif kind == "LeakyRelu":
        named = {"alpha": 0.2}
    elif kind == "Softmax":
        named = {"axis": -1, "opset": 13}
    elif kind == "Concat":
        inputs = [*made, *first, *quantized_input(case, (2, 2, 4, 4), dtype)]
        named = {"axis": 1}
    elif kind == "Where":
        condition = case.constant(case.random.random((2, 3, 4, 4)) < 0.5)
        inputs = [condition, *first, *quantized_input(case, (2, 3, 4, 4), dtype), *made]
    finished(case, case.node(f"QLinear{kind}", *inputs, domain=MICROSOFT, **named), *made)


def scaled(case: Case) -> None:
    """Products of bytes that ONNX Runtime's optimizer makes, in float32."""
    dtype = case.one_of(np.uint8, np.int8)
    weights, along = case.constant(case.bytes_(dtype, 6, 3)), (3,) if case.chance(0.5) else ()
    bias = case.constant(case.random.normal(size=3).astype(np.float32))
    zeros = case.constant(case.bytes_(dtype, *along)) if case.chance(0.5) else ""
    if case.chance(0.5):
        reals = case.input(case.random.normal(size=(2, 4, 6)).astype(np.float32))
        inputs = [reals, weights, case.scale(*along), zeros, bias]
        made = case.node("DynamicQuantizeMatMul", *inputs, domain=MICROSOFT)
    else:
        name = case.input(case.bytes_(np.uint8, 2, 4, 6))
        zero = case.constant(case.bytes_(np.uint8)) if case.chance(0.5) else ""
        inputs = [name, weights, case.scale(), case.scale(*along), zero, zeros, bias]
        made = case.node("MatMulIntegerToFloat", *inputs, domain=MICROSOFT)
    case.output(made, 1e-3)


def few_bits(case: Case) -> None:
    """Weights of four and eight bits, in blocks."""
    rows, depth, block = case.one_of(3, 8), case.one_of(32, 40, 96), case.one_of(16, 32)
    bits = case.one_of(4, 4, 8)
    blocks = -(-depth // block)
    x = case.input(case.random.normal(size=(2, 3, depth)).astype(np.float32))
    weights = case.constant(case.bytes_(np.uint8, rows, blocks, block * bits // 8))
    scales = case.scale(rows * blocks) if case.chance(0.3) else case.scale(rows, blocks)
    zeros, bias = "", ""
    if case.chance(0.5):
        packed = case.bytes_(np.uint8, rows * -(-blocks * bits // 8))
        zeros = case.constant(packed)
    if case.chance(0.3):
        bias = case.constant(case.random.normal(size=rows).astype(np.float32))
    inputs = [x, weights, scales, zeros, "", bias] if bias else [x, weights, scales, zeros]
    named = {"K": depth, "N": rows, "bits": bits, "block_size": block}
    case.output(case.node("MatMulNBits", *inputs, domain=MICROSOFT, **named), 0.01)


SMALL = (ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8, np.int16)


def integers(case: Case, dtype: Any, *shape: int) -> str:
    """Constant integers of any type that ONNX Runtime dequantizes in blocks."""
    limits = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]  # has no types
    drawn = case.random.integers(limits.min, limits.max, shape, endpoint=True)
    return case.constant(drawn.astype(dtype))


def blocks(case: Case) -> None:
    """Integers with a scale for each block, then multiplied, looked up, or handed out."""
    case.opset = 21
    dtype, axis = case.one_of(*SMALL), case.one_of(0, 1, -1)
    shape, block = (case.one_of(32, 37, 64), case.one_of(3, 16, 40)), case.one_of(16, 32)
    sizes = list(shape)
    sizes[axis] = -(-shape[axis] // block)
    scale_type = np.float16 if case.chance(0.2) else np.float32
    inputs = [integers(case, dtype, *shape), case.scale(*sizes, dtype=scale_type)]
    if case.chance(0.5):
        inputs.append(integers(case, dtype, *sizes))
    made = case.node("DequantizeLinear", *inputs, axis=axis, block_size=block)
    if scale_type is np.float32 and case.chance(0.5):
        x = case.input(case.random.normal(size=(2, 3, shape[0])).astype(np.float32))
        made = case.node("MatMul", x, made)
        case.output(made, 50.0 if dtype is np.int16 else 0.5)
    elif case.chance(0.5):
        where = case.input(case.random.integers(0, shape[0], (2, 3)))
        case.output(case.node("Gather", made, where), 0.02)
    else:
        case.output(made, 0.02)


def looked_up(case: Case) -> None:
    """Rows of a table of integers with a scale for each block."""
    case.opset = 21
    rows, depth, block = 9, case.one_of(32, 64, 80), case.one_of(16, 32)
    where = case.input(case.random.integers(0, rows, case.one_of((3,), (2, 2))))
    counts = rows, -(-depth // block)
    named: dict[str, Any] = {"block_size": block, "quantize_axis": 1, "gather_axis": 0}
    kind = case.one_of("two in a byte", "bytes", ml_dtypes.int4, ml_dtypes.uint4)
    zeros: list[str] = []
    if kind in ("two in a byte", "bytes"):
        parts = 2 if kind == "two in a byte" else 1
        named["bits"] = 8 // parts
        table = case.constant(case.bytes_(np.uint8, rows, depth // parts))
        if case.chance(0.5):
            zeros = [case.constant(case.bytes_(np.uint8, rows, -(-counts[1] // parts)))]
    else:
        table = integers(case, kind, rows, depth)
        if case.chance(0.5):
            zeros = [integers(case, kind, *counts)]
    inputs = [table, where, case.scale(*counts), *zeros]
    case.output(case.node("GatherBlockQuantized", *inputs, domain=MICROSOFT, **named), 1e-4)


FLOATS_OF_EIGHT_BITS = (
    *(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz),
    *(ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz),
)


def floats(case: Case) -> None:
    """Activations and weights in floats of eight bits, before a product."""
    case.opset = 19
    dtype = case.one_of(*FLOATS_OF_EIGHT_BITS)
    zero = case.constant(np.zeros((), dtype))
    x = case.input(case.random.normal(scale=3, size=(2, 4, 6)).astype(np.float32))
    scales = case.scale(), case.scale()
    weights = case.constant(case.random.normal(size=(6, 3)).astype(dtype))
    quantized = case.node("QuantizeLinear", x, scales[0], zero)
    reals = case.node("DequantizeLinear", quantized, scales[0], zero)
    made = case.node("MatMul", reals, case.node("DequantizeLinear", weights, scales[1], zero))
    case.output(reals, 1e-6)
    case.output(made, 1e-3)


def recurrent(case: Case) -> None:
    """Return a network over time steps with weights in bytes."""
    steps, batch, width, hidden = case.one_of(1, 4), case.one_of(1, 1, 3), 5, 6
    direction = case.one_of("forward", "reverse", "bidirectional")
    passes = 2 if direction == "bidirectional" else 1
    dtype = case.one_of(np.uint8, np.int8)

    def reals(*shape: int) -> Array:
        return case.random.normal(size=shape).astype(np.float32)

    def optional(*shape: int) -> str:
        return case.constant(reals(*shape)) if case.chance(0.5) else ""

    def scaled() -> list[str]:
        along = (passes, 4 * hidden) if case.chance(0.3) else (passes,)
        scale = case.constant(case.random.uniform(0.002, 0.01, along).astype(np.float32))
        zero = 0 if dtype is np.int8 else 128
        return [scale, case.constant(np.full(along, zero, dtype))]

    weights = [case.constant(case.bytes_(dtype, passes, n, 4 * hidden)) for n in (width, hidden)]
    x, bias = case.input(reals(steps, batch, width)), optional(passes, 8 * hidden)
    ends = case.random.integers(1, steps + 1, batch).astype(np.int32)
    lengths = case.input(ends) if case.chance(0.5) else ""
    states = [optional(passes, batch, hidden) for _ in range(2)]
    peephole = optional(passes, 3 * hidden)
    inputs = [x, *weights, bias, lengths, *states, peephole, *scaled(), *scaled()]
    made = case.node(
        "DynamicQuantizeLSTM",
        *inputs,
        domain=MICROSOFT,
        count=3,
        hidden_size=hidden,
        direction=direction,
    )
    for suffix in ("", "_1", "_2"):
        case.output(made + suffix, 0.03)


KINDS: list[Callable[[Case], None]] = [
    *(conversions, moved, convolution, matrices, sums, convolved, contributed, scaled, few_bits),
    *(blocks, looked_up, recurrent, floats),
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_as_onnx_runtime(kind: Callable[[Case], None], seed: int) -> None:
    case = Case(1000 * KINDS.index(kind) + seed)
    kind(case)
    check(case)


def check(case: Case) -> None:
    """Compare all devices with ONNX Runtime without its optimizer, within one step."""
    proto = case.model()
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    session = exact_session(proto, options)
    expected = dict(zip(case.steps, session.run(None, case.feed), strict=True))
    model = crosschip.load(proto)
    model.verify()
    for devices in DEVICES:
        with crosschip.compile(model, devices, cache=False) as compiled:
            found = compiled.run(case.feed)
        for name, array in expected.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), devices
            apart = np.abs(found[name].astype(np.float64) - array.astype(np.float64))
            assert np.all(apart <= case.steps[name] * 1.01), (devices, name)
