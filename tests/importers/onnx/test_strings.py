"""Strings in ONNX models: extension operations read and make them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import xxhash
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser
from tests.importers.onnx.backend_cases import Case, judge, text_cases

import crosschip
from crosschip.importers import load
from crosschip.ir import (
    Builder,
    DeviceError,
    ElementType,
    Extension,
    InputError,
    Model,
    ModelError,
    ModelFileError,
    TensorType,
    UnsupportedError,
)
from crosschip.ops.definition.serialization import from_bytes, to_bytes
from crosschip.ops.standard.conversion import Assign
from crosschip.runtime.inputs import random_inputs

Array = NDArray[Any]

HEADER = '<ir_version: 8, opset_import: ["" : 20, "ai.onnx.ml" : 4, "local" : 1]>'
WORDS = np.array([["b", "a", "日本"], ["", "a", "c\0d"]], object)
ARRAYS: dict[str, Array] = {
    "words": WORDS,
    "others": WORDS[::-1].copy(),
    "row": WORDS[:1],
    "list": np.array(["a", "b", "b"], object),
    "pair": np.array(["off", "on"], object),
    "reals": np.arange(6, dtype=np.float32).reshape(2, 3),
    "places": np.array([1, 0]),
    "flags": np.array([[True, False, True], [False, False, True]]),
}
DECLARED = {
    "words": "string[2, 3] words",
    "others": "string[2, 3] others",
    "row": "string[1, 3] row",
    "list": "string[3] list",
    "pair": "string[2] pair",
    "reals": "float[2, 3] reals",
    "places": "int64[2] places",
    "flags": "bool[2, 3] flags",
}

GRAPHS = {
    "array features": "=> (string[2, 1] y) <int64[1] k = {1}>"
    " { y = ai.onnx.ml.ArrayFeatureExtractor(words, k) }",
    "branches": "=> (string[K, 3] y) <int64[1] z = {0}, int64 one = {1}> {"
    " n = ReduceSum<keepdims = 0>(places)  c = Equal(n, one)"
    " y = If<then_branch = one () => (string[2, 3] p)"
    ' { a = Constant<value_strings = ["x", "y", "z"]>()  p = StringConcat(words, a) },'
    " else_branch = two () => (string[4, 3] q) { q = Concat<axis = 0>(words, words) }>(c) }",
    "branch that is chosen": "=> (string[2, 3] y) <bool c = {1}> {"
    " y = If<then_branch = one () => (string[2, 3] p) { p = StringConcat(words, words) },"
    " else_branch = two () => (string[2, 3] q) { q = Identity(words) }>(c) }",
    "cast and back": "=> (float[2] y) { a = Cast<to = 8>(places)  y = Cast<to = 1>(a) }",
    "cast like": "=> (string[2] y) { y = CastLike(places, words) }",
    "cast of a constant": "=> (string[2, 3] y) <int64[3] k = {7, 8, 9}>"
    " { a = Cast<to = 8>(k)  y = StringConcat(words, a) }",
    "categories": '=> (int64[2, 3] y) { a = ai.onnx.ml.CategoryMapper<cats_strings = ["a", "b"],'
    " cats_int64s = [5, 6]>(words)  y = Neg(a) }",
    "classes": "=> (string[2] y, float[2, 2] p) { a, p = ai.onnx.ml.LinearClassifier<"
    'classlabels_strings = ["no", "yes"], intercepts = [0.0, 1.0],'
    " coefficients = [1.0, 2.0, 3.0, -1.0, 0.0, 1.0]>(reals)  y = StringConcat(a, a) }",
    "compress": "=> (string[K] y) <bool[3] c = {1, 0, 1}> { y = Compress(words, c) }",
    "concat": "=> (string[4, 3] y) { y = Concat<axis = 0>(words, words) }",
    "constants": '=> (string[2, 3] y) { a = Constant<value_string = "-">()'
    ' b = StringConcat(words, a)  c = Constant<value_strings = ["x", "y", "ü"]>()'
    " y = StringConcat(b, c) }",
    "constant as an output": '=> (string y, float[2, 3] z) { y = Constant<value_string = "-">()'
    " z = Neg(reals) }",
    "constant to look up": "=> (string[2] y) <int64[1] all = {-1}> {"
    ' a = Constant<value_strings = ["x", "y"]>()  b = Identity(a)  c = Reshape(b, all)'
    " y = Gather(c, places) }",
    "equal": "=> (bool[2, 3] y) { y = Equal(words, others) }",
    "expand": "=> (string[2, 2, 3] y) <int64[3] s = {2, 2, 3}> { y = Expand(words, s) }",
    "flatten": "=> (string[1, 6] y) { y = Flatten<axis = 0>(words) }",
    "function": '=> (string[2, 3] y) { y = local.f<mark = "!">(words) }',
    "gather": "=> (string[2, 3] y) { y = Gather(words, places) }",
    "gather elements": "=> (string[1, 3] y) <int64[1, 3] k = {1, 0, 1}>"
    " { y = GatherElements(words, k) }",
    "gather slices": "=> (string[1] y) <int64[1, 2] k = {1, 2}> { y = GatherND(words, k) }",
    "identity": "=> (string[2, 3] y) { y = Identity(words) }",
    "labels from strings": '=> (float[2, 3] y) { a = ai.onnx.ml.LabelEncoder<keys_strings = ["a"],'
    " values_int64s = [5]>(words)  y = Cast<to = 1>(a) }",
    "labels to strings": "=> (string[2] y) { a = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1],"
    ' values_strings = ["zero", "one"]>(places)  y = StringConcat(a, a) }',
    "loop": "=> (string[2, 3] y) <bool go = {1}> { n = ReduceSum<keepdims = 0>(places)"
    " y = Loop<body = step (int64 k, bool c, string[2, 3] s) => (bool d, string[2, 3] t)"
    " { d = Identity(c)  t = StringConcat(s, words) }>(n, go, words) }",
    "loop that is unrolled": "=> (string[2, 3] y) <bool go = {1}, int64 n = {3}> {"
    " y = Loop<body = step (int64 k, bool c, string[2, 3] s) => (bool d, string[2, 3] t)"
    " { d = Identity(c)  t = StringConcat(s, words) }>(n, go, words) }",
    "n-grams": "=> (float[2] y) { y = TfIdfVectorizer<mode = \"TF\", min_gram_length = 1,"
    " max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0, 1],"
    ' pool_strings = ["a", "b"]>(list) }',
    "one-hot": "=> (string[2, 3] y) <int64 d = {3}> { y = OneHot(places, d, pair) }",
    "one-hot of strings": '=> (float[2, 3, 2] y) { y = ai.onnx.ml.OneHotEncoder<cats_strings ='
    ' ["a", "b"], zeros = 1>(words) }',
    "reshape": "=> (string[3, 2] y) <int64[2] s = {3, 2}> { y = Reshape(words, s) }",
    "reverse": "=> (string[2, 3] y) <int64[3] n = {2, 1, 2}> { y = ReverseSequence(words, n) }",
    "scan": "=> (string[2, 3] y) { y = Scan<num_scan_inputs = 1, body = b (string[3] s) =>"
    " (string[3] t) { t = StringConcat(s, s) }>(words) }",
    "scatter elements": "=> (string[2, 3] y) <int64[1, 3] k = {1, 0, 1}>"
    " { y = ScatterElements(words, k, row) }",
    "sequence": "=> (string[6] y) { s = SplitToSequence<keepdims = 0>(words)"
    " y = ConcatFromSequence<axis = 0>(s) }",
    "shape and size": "=> (int64[2] y, int64 z) { y = Shape(words)  z = Size(words) }",
    "slice": "=> (string[1, 3] y) <int64[1] s = {1}, int64[1] e = {2}> { y = Slice(words, s, e) }",
    "split": "=> (string[1, 3] y, string[1, 3] z) { y, z = Split<num_outputs = 2>(words) }",
    "split at and match": '=> (bool[2, 3] y, string[2, 3, K] s, int64[2, 3] n) {'
    ' y = RegexFullMatch<pattern = "[ab]">(words)  s, n = StringSplit<delimiter = "c">(words) }',
    "squeeze": "=> (string[2, 3] y) <int64[1] k = {1}> { a = Unsqueeze(words, k)"
    " y = Squeeze(a, k) }",
    "straight through": "=> (string[2, 3] words) { }",
    "tile": "=> (string[2, 6] y) <int64[2] n = {1, 2}> { y = Tile(words, n) }",
    "transpose": "=> (string[3, 2] y) { y = Transpose(words) }",
    "unique": "=> (string[K] y, int64[K] a, int64[6] b, int64[K] c)"
    " { y, a, b, c = Unique(words) }",
    "where": "=> (string[2, 3] y) { y = Where(flags, words, others) }",
}  # fmt: skip
FUNCTION = """<domain: "local", opset_import: ["" : 20]> f <mark: string = "?"> (v) => (r)
    { c = Constant<value_string: string = @mark>()  r = StringConcat(v, c) }"""

BOTH = """g (float[N, 3] reals, string[N, 3] words) => (float[N, 3] y, string[N, 3] z, bool[N, 3] m)
    { a = Relu(reals)  b = Add(a, reals)  z = StringConcat(words, words)
      t = RegexFullMatch<pattern = "aa">(z)  y = Neg(b)  m = Not(t) }"""

Importing = Callable[[str], tuple[Model, Path]]


@pytest.fixture
def importing(tmp_path: Path) -> Importing:
    def run(graph: str) -> tuple[Model, Path]:
        return imported(parser.parse_model(f"{HEADER} {graph}"), tmp_path)

    return run


def imported(proto: ModelProto, folder: Path) -> tuple[Model, Path]:
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    model = load(path)
    model.verify()
    return model, path


def oracle(path: Path | bytes, inputs: dict[str, Array]) -> dict[str, Array]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def same(found: dict[str, Array], expected: dict[str, Array]) -> None:
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tolist() == array.tolist()


def is_right_directly(case: Case) -> bool:
    """Return whether ONNX Runtime, by itself, gives what a case expects."""
    names = [value.name for value in case.model.graph.input]
    for inputs, expected in case.data_sets:
        given = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True)}
        try:
            found = oracle(case.model.SerializeToString(), given).values()
        except Exception:  # the engine's exceptions have no base class
            return False
        for ours, theirs in zip(found, expected, strict=True):
            if ours.tolist() != np.asarray(theirs).tolist():
                return False
    return True


def test_what_onnxruntime_gets_right_is_right(tmp_path: Path) -> None:
    assert text_cases()
    for case in text_cases():
        outcome = judge(case, ["onnxruntime"], tmp_path)
        assert outcome.verdict == ("right" if is_right_directly(case) else "refused"), outcome


def test_the_reference_gets_all_right(tmp_path: Path) -> None:
    for case in text_cases():
        for devices in (["reference"], ["onnxruntime", "reference"]):
            assert judge(case, devices, tmp_path).verdict == "right"


DECLINED = {
    ("onnxruntime", "gather"): "ONNX Runtime loses strings where it gathers rows of them",
    ("onnxruntime", "constant to look up"): "ONNX Runtime loses strings where it gathers",
    ("reference", "categories"): "ONNX's own evaluator does not have it",
    ("reference", "one-hot"): "ONNX's own evaluator has no OneHot of strings",
}
"""The reasons why a device alone does not run a graph."""


@pytest.mark.parametrize("name", GRAPHS)
def test_every_operator_that_takes_strings(importing: Importing, tmp_path: Path, name: str) -> None:
    graph = GRAPHS[name]
    read = {key: array for key, array in ARRAYS.items() if key in graph}
    declared = ", ".join(DECLARED[key] for key in read)
    model, path = importing(f"g ({declared}) {graph} {FUNCTION if 'local.' in graph else ''}")
    again = from_bytes(to_bytes(model))
    assert str(again) == str(model)
    expected = {"y": WORDS[[1, 0]]} if name == "gather" else oracle(path, read)
    for devices in ("onnxruntime", "reference", "onnxruntime,reference"):
        if (devices, name) in DECLINED:
            with pytest.raises(UnsupportedError, match=DECLINED[devices, name]):
                crosschip.compile(model, devices=devices, cache=False)
            continue
        if (devices, name) == ("reference", "split at and match"):
            # ONNX Runtime finds no part in an empty string; ONNX's evaluator, like Python, one.
            continue
        with crosschip.compile(again, devices=devices, cache=tmp_path / "cache") as compiled:
            same(compiled.run(read), expected)
        with crosschip.compile(model, devices=devices, cache=tmp_path / "cache") as compiled:
            assert compiled.report.cache == ("hit" if model.operations else "off")
            same(compiled.run(read), expected)


def test_strings_are_no_constants_of_a_model(importing: Importing) -> None:
    for name in ("constants", "constant to look up", "constant as an output"):
        declared = "float[2, 3] reals, string[2, 3] words, int64[2] places"
        model, _ = importing(f"g ({declared}) {GRAPHS[name]}")
        assert all(o.type.element_type is not ElementType.STRING for o in model.constants)
        assert any(isinstance(operation, Extension) for operation in model.operations)


def test_string_initializers_of_any_version(importing: Importing, tmp_path: Path) -> None:
    """Before version 4 of the file format, initializers are inputs, too."""
    for version in (3, 4, 8):
        proto = parser.parse_model(
            '<ir_version: 8, opset_import: ["" : 20]> '
            "g (string[2] x) => (string[2] y) { y = StringConcat(x, c) }"
        )
        proto.ir_version = version
        constant = numpy_helper.from_array(np.array(["é", ""], object), "c")
        proto.graph.initializer.append(constant)
        if version < 4:
            proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.STRING, [2]))
        model, path = imported(proto, tmp_path)
        x = np.array(["a", "b"], object)
        with crosschip.compile(model, devices="onnxruntime", cache=False) as compiled:
            same(compiled.run({"x": x}), oracle(path, {"x": x}))


def test_numbers_and_strings_side_by_side(importing: Importing) -> None:
    model, path = importing(BOTH)
    inputs = {"reals": ARRAYS["reals"], "words": WORDS}
    with crosschip.compile(model, devices=["openvino", "onnxruntime"], cache=False) as compiled:
        by_device: dict[str | None, set[str]] = {}
        for decision in compiled.placement.decisions:
            by_device.setdefault(decision.device, set()).add(decision.type)
        assert by_device == {
            "openvino": {"RELU", "ADD", "NEG"},
            "onnxruntime": {"onnx.StringConcat", "onnx.RegexFullMatch", "NOT"},
        }
        same(compiled.run(inputs), oracle(path, inputs))
        fixed_width = {**inputs, "words": WORDS.astype(str)}
        same(compiled.run(fixed_width), oracle(path, inputs))
        made_up = random_inputs(model, {"words": (4, 3)}, seed=3)
        same(compiled.run(made_up), oracle(path, made_up))
        empty = {name: array[:0] for name, array in inputs.items()}
        same(compiled.run(empty), oracle(path, empty))


def test_not_every_device_takes_strings(importing: Importing) -> None:
    model, path = importing(BOTH)
    with pytest.raises(UnsupportedError, match=r"onnx\.StringConcat"):
        crosschip.compile(model, devices="openvino", cache=False)
    inputs = {"reals": ARRAYS["reals"], "words": WORDS}
    with crosschip.compile(model, devices="openvino,reference", cache=False) as compiled:
        same(compiled.run(inputs), oracle(path, inputs))


def test_what_is_no_string_is_refused_before_it_runs(importing: Importing) -> None:
    model, _ = importing(BOTH)
    reals = ARRAYS["reals"]
    with crosschip.compile(model, devices="onnxruntime", cache=False) as compiled:
        for wrong, message in (
            (reals, "'words' is float32, but the model takes string"),
            (np.full((2, 3), b"a"), r"'words' is \|S1"),
            (np.array([["a", "b", 3]] * 2, object), "an element of type int"),
            (WORDS[:1], "has shape"),
        ):
            with pytest.raises(InputError, match=message):
                compiled.run({"reals": reals, "words": wrong})
        with pytest.raises(InputError, match="'reals' is object"):
            compiled.run({"reals": WORDS, "words": WORDS})
        with pytest.raises(DeviceError, match="surrogates not allowed"):
            compiled.run({"reals": reals, "words": np.full((2, 3), "\ud800", object)})


WRONG_TENSORS = {
    "too few": (
        TensorProto(data_type=TensorProto.STRING, dims=[2], string_data=[b"a"]),
        "has 1 strings, but its shape needs 2",
    ),
    "raw": (
        TensorProto(data_type=TensorProto.STRING, dims=[1], raw_data=b"a"),
        "strings must be in the field for strings",
    ),
    "elsewhere": (
        TensorProto(data_type=TensorProto.STRING, dims=[1], data_location=TensorProto.EXTERNAL),
        "strings must be in the field for strings",
    ),
    "no shape": (
        TensorProto(data_type=TensorProto.STRING, dims=[-1], string_data=[b"a"]),
        "is not a shape",
    ),
}


@pytest.mark.parametrize("kind", WRONG_TENSORS)
@pytest.mark.parametrize("place", ["initializer", "node"])
def test_damaged_strings(tmp_path: Path, kind: str, place: str) -> None:
    tensor, message = WRONG_TENSORS[kind]
    proto = parser.parse_model(
        f"{HEADER} g (string[2] x) => (string[2] y) {{ y = StringConcat(x, c) }}"
    )
    if place == "initializer":
        proto.graph.initializer.add().CopyFrom(tensor)
        proto.graph.initializer[0].name = "c"
    else:
        proto.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=tensor))
    with pytest.raises(ModelFileError, match=message):
        imported(proto, tmp_path)


def test_strings_that_are_not_utf8_crash_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    proto = parser.parse_model(
        f"{HEADER} g (string[1] x) => (string[1] y) {{ y = StringConcat(x, c) }}"
    )
    tensor = TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"\xff"], name="c")
    proto.graph.initializer.append(tensor)
    model, _ = imported(proto, tmp_path)
    with (
        crosschip.compile(model, devices="onnxruntime", cache=False) as compiled,
        pytest.raises(DeviceError, match="'utf-8' codec can't decode"),
    ):
        compiled.run({"x": np.array(["a"], object)})
    assert capfd.readouterr() == ("", "")


def test_no_standard_operator_and_no_constant_takes_strings() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.STRING, (2,)))
    with pytest.raises(ModelError, match=r"ASSIGN\.input: takes .*, not string"):
        b.add(Assign, x)
    for wrong in (np.array(["a"], object), np.array(["a"])):
        with pytest.raises(ModelError, match="has elements of type"):
            b.constant(wrong)


def test_saved_models_hold_no_strings_either() -> None:
    b = Builder()
    b.output("y", b.input("x", TensorType(ElementType.STRING, (2,))))
    b.output("c", b.constant(np.zeros(2), "c"))
    saved = to_bytes(b.build())
    assert str(from_bytes(saved)) == str(b.build())
    body = saved[32:].replace(b'"float64"', b'"string" ')
    digest = struct.pack("<Q", xxhash.xxh3_64_intdigest(body))
    with pytest.raises(ModelFileError, match="is not laid out as a saved model"):
        from_bytes(saved[:24] + digest + body)
