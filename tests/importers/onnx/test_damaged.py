"""Damaged files: a model or an error of ours comes out, and little memory is used."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper, parser
from tests.importers.onnx.backend_cases import cases, text_cases
from tests.importers.onnx.test_extensions import CASES, HEADER

from crosschip.importers import load
from crosschip.ir import Error, Model

WHOLE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 3, H, 32] x) => (float y, float pooled)
<float[2] s = {1, 2}, float[4] scales = {1, 1, 2, 2}, float low = {0}, float high = {6},
 int64[1] i0 = {0}, int64[1] i1 = {1}, float qs = {0.1}, uint8 qz = {3}, int64[2] es = {5, 4}>
{
    [conv] c = Conv<pads = [1, 1, 1, 1], strides = [2, 2], kernel_shape = [3, 3]>(x, w, b)
    n = BatchNormalization<epsilon = 0.1>(c, s, s, s, s)
    r = Relu(n)
    p = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1>(r)
    u = Resize<coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(p, , scales)
    t = ConvTranspose<strides = [2, 2], auto_pad = "SAME_UPPER">(p, wt)
    a = Add(u, t)
    l = Clip(a, low, high)
    s1, s2 = Split<axis = 1, num_outputs = 2>(l)
    j = Concat<axis = 1>(s2, s1)
    g1 = GlobalAveragePool(j)
    g2 = Shape(g1)
    g3 = Slice(g2, i0, i1, i0)
    k1 = Constant<value_ints = [-1]>()
    k2 = Cast<to = 7>(k1)
    g4 = Concat<axis = 0>(g3, k2)
    f = Reshape<allowzero = 0>(g1, g4)
    d = Gemm<transB = 1, alpha = 1.0>(f, fw, fb)
    ln = LayerNormalization<axis = -1>(d, fb, fb)
    sm = Softmax<axis = -1>(ln)
    q = QuantizeLinear(sm, qs, qz)
    dq = DequantizeLinear(q, qs, qz)
    h1 = Unsqueeze(dq, i1)
    h2 = Squeeze(h1, i1)
    h3 = Transpose<perm = [1, 0]>(h2)
    h4 = ReduceMean<keepdims = 1>(h3, i1)
    h5 = Flatten<axis = 1>(h4)
    h6 = Expand(h5, es)
    h7 = Gather<axis = 0>(h6, i0)
    h8 = ConstantOfShape(es)
    h9 = Mul(h7, h8)
    pooled = AveragePool<kernel_shape = [2, 2], auto_pad = "SAME_LOWER">(j)
    y = MatMul(h9, m)
}
"""
WEIGHTS = {"w": (2, 3, 3, 3), "b": (2,), "wt": (2, 2, 3, 3), "fw": (5, 2), "fb": (5,), "m": (4, 2)}
INTEGERS = (0, 1, -1, 2, -2, 3, 5, 64, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)
KINDS = [AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.GRAPH]
REALS = (0.0, -1.0, 0.5, 1e38, 1e-40, float("nan"), float("inf"), float("-inf"))
STRINGS = (b"", b"\xff", b"NOTSET", b"SAME_LOWER", b"VALID", b"linear", b"align_corners")
NAMES = ("", "axis", "axes", "pads", "strides", "kernel_shape", "to", "split", "output_shape")


@pytest.fixture(scope="module")
def whole() -> ModelProto:
    """A sound model with a node of almost every operator."""
    proto = parser.parse_model(WHOLE)
    weights = [numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in WEIGHTS.items()]
    proto.graph.initializer.extend(weights)
    return proto


def load_all(path: Path, files: Iterator[bytes]) -> Counter[str]:
    """Import each file; how often what came out."""
    found: Counter[str] = Counter()
    tracemalloc.start()
    for data in files:
        path.write_bytes(data)
        outcome = outcome_of(path)
        if isinstance(outcome, Error):
            assert str(path) in str(outcome)
        else:
            outcome.verify()
        found[type(outcome).__name__] += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25
    return found


def outcome_of(path: Path) -> Model | Error:
    try:
        return load(path)
    except Error as error:
        return error


def test_the_model_itself_is_sound(whole: ModelProto, tmp_path: Path) -> None:
    assert load_all(tmp_path / "m.onnx", iter([whole.SerializeToString()])) == {"Model": 1}


def truncated(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def inserted(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.randbytes(rng.randint(1, 30)) + data[place:]


def deleted(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.randint(1, 50) :]


@pytest.mark.parametrize("damage", [truncated, flipped, inserted, deleted])
def test_damaged_bytes(
    whole: ModelProto, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    data, rng = whole.SerializeToString(), random.Random(damage.__name__)
    found = load_all(tmp_path / "m.onnx", (damage(data, rng) for _ in range(100)))
    assert found["ModelFileError"] > 20


def test_damaged_real_models(models: Path, tmp_path: Path) -> None:
    data = (models / "ocr-onnx" / "ch_ppocr_mobile_v2.0_cls_infer.onnx").read_bytes()
    rng = random.Random(8)
    damages = [truncated, flipped, inserted, deleted]
    found = load_all(tmp_path / "m.onnx", (rng.choice(damages)(data, rng) for _ in range(60)))
    assert found["ModelFileError"] > 10


def test_wrong_nodes(whole: ModelProto, tmp_path: Path) -> None:
    rng = random.Random(9)
    found = load_all(tmp_path / "m.onnx", (with_a_wrong_node(whole, rng) for _ in range(400)))
    assert min(found["Model"], found["ModelFileError"], found["UnsupportedError"]) > 50


@pytest.mark.slow
def test_wrong_tensors_and_inputs(whole: ModelProto, tmp_path: Path) -> None:
    rng = random.Random(10)
    found = load_all(tmp_path / "m.onnx", (with_a_wrong_tensor(whole, rng) for _ in range(200)))
    assert min(found["Model"], found["ModelFileError"]) > 50


def with_a_wrong_node(whole: ModelProto, rng: random.Random) -> bytes:
    proto = ModelProto.FromString(whole.SerializeToString())
    proto.opset_import[0].version = rng.choice([18, 18, *range(7, 29)])
    node = rng.choice(proto.graph.node)
    made = [name for other in proto.graph.node for name in other.output]
    names = ["", "x", *made, *(tensor.name for tensor in proto.graph.initializer)]
    change = rng.randrange(6)
    if change == 0:
        node.op_type = rng.choice(proto.graph.node).op_type
    elif change == 1 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif change == 2 and node.input:
        del node.input[rng.randrange(len(node.input))]
    elif change == 3:
        node.input.append(rng.choice(names))
    elif change == 4:
        node.output.append(rng.choice(["", "x", "new"]))
    for attribute in node.attribute if change == 5 else ():
        attribute.i = rng.choice(INTEGERS)
        attribute.f = rng.choice(REALS)
        attribute.s = rng.choice(STRINGS)
        attribute.ints[:] = rng.choices(INTEGERS, k=rng.randrange(6))
        attribute.name = rng.choice([attribute.name, attribute.name, *NAMES])
        attribute.type = rng.choice([attribute.type] * 20 + KINDS)
    return proto.SerializeToString()


@pytest.mark.slow
def test_wrong_nodes_of_all_operators(tmp_path: Path) -> None:
    """Nodes of the ONNX project's own tests, among them those that are functions of others."""
    rng = random.Random(11)
    known = cases()
    files = (with_a_wrong_node(rng.choice(known).model, rng) for _ in range(400))
    found = load_all(tmp_path / "m.onnx", files)
    assert min(found["Model"], found["ModelFileError"], found["UnsupportedError"]) > 20


def test_wrong_strings(tmp_path: Path) -> None:
    """Strings where numbers belong, numbers where strings do, and strings that are none."""
    rng = random.Random(12)
    models = [case.model for case in text_cases()]
    models += [parser.parse_model(f"{HEADER} {graph}") for graph, *_ in CASES.values()]
    files = (with_wrong_strings(rng.choice(models), rng) for _ in range(400))
    found = load_all(tmp_path / "m.onnx", files)
    assert min(found["Model"], found["ModelFileError"], found["UnsupportedError"]) > 20


def with_wrong_strings(model: ModelProto, rng: random.Random) -> bytes:
    proto = ModelProto.FromString(model.SerializeToString())
    change = rng.randrange(4)
    if change == 0:
        value = rng.choice([*proto.graph.input, *proto.graph.output])
        value.type.tensor_type.elem_type = rng.randrange(30)
    elif change == 1:
        return with_a_wrong_node(proto, rng)
    elif change == 2:
        return flipped(proto.SerializeToString(), rng)
    for node in proto.graph.node if change == 3 else ():
        node.op_type = rng.choice([node.op_type, "Constant"])
        name = rng.choice(["value", "value_string", "value_strings", "pattern", "body"])
        wrong = [
            TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=[b"a", b"\xff"]),
            TensorProto(data_type=TensorProto.STRING, dims=[3]),
            *("", ["a", "b"], b"\xff", 1, [1.5]),
        ]
        node.attribute.append(helper.make_attribute(name, rng.choice(wrong)))
    return proto.SerializeToString()


def test_an_attribute_of_a_function_whose_name_is_no_text(tmp_path: Path) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.f<secret = 2>(x) }
        <domain: "local", opset_import: ["" : 17]> f <secret> (v) => (r)
        { r = Concat<axis = 0, zzzzzz: int = @secret>(v) }""")
    data = proto.SerializeToString()
    assert data.count(b"zzzzzz") == 1
    assert (
        load_all(tmp_path / "m.onnx", iter([data.replace(b"zzzzzz", b"\xee\xeezzzz")]))["Model"]
        == 0
    )


def with_a_wrong_tensor(whole: ModelProto, rng: random.Random) -> bytes:
    proto = ModelProto.FromString(whole.SerializeToString())
    tensor = rng.choice(proto.graph.initializer)
    shape = proto.graph.input[0].type.tensor_type.shape
    change = rng.randrange(5)
    if change == 0:
        tensor.dims[:] = rng.choices(INTEGERS, k=rng.choice([0, 1, 2, 3, 4, 70]))
    elif change == 1:
        tensor.data_type = rng.randrange(30)
    elif change == 2:
        values = np.array(rng.choices(INTEGERS, k=rng.randrange(5)), np.int64)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    elif change == 3:
        odd: list[str | int] = ["N", 2**62]
        sizes = [rng.choice([size, size, *odd]) for size in tensor.dims]
        proto.graph.input.append(
            helper.make_tensor_value_info(tensor.name, tensor.data_type, sizes)
        )
        proto.graph.initializer.remove(tensor)
    else:
        rng.choice(shape.dim).dim_value = rng.choice(INTEGERS)
    return proto.SerializeToString()
