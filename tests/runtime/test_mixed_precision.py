"""Listed operators in float32 while a device computes the others in bfloat16 or float16."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.lowering.test_mixed_precision import image, oracle, pairs
from tests.precisions import is_offered, is_refused

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Capabilities, Options, Precision, Program
from crosschip.ir import Array, InputError, Model, UnsupportedError
from crosschip.runtime.compiled import CompiledModel

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(0)
LAYERS = 4
WEIGHTS = [RANDOM.standard_normal((24, 24)).astype(np.float32) / 5 for _ in range(LAYERS)]
LINES = [f"MatMul::m{layer}" for layer in range(LAYERS)]
REDUCED = [("xla", "bfloat16"), ("xla", "float16"), ("openvino", "bfloat16")]


def network() -> onnx.ModelProto:
    """Matrix products with hyperbolic tangents between them, of any number of rows."""
    nodes, before = [], "x"
    for layer in range(LAYERS):
        nodes.append(helper.make_node("MatMul", [before, f"w{layer}"], [f"m{layer}"]))
        before = "y" if layer == LAYERS - 1 else f"t{layer}"
        nodes.append(helper.make_node("Tanh", [f"m{layer}"], [before]))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 24]) for n in "xy"]
    weights = [numpy_helper.from_array(w, f"w{layer}") for layer, w in enumerate(WEIGHTS)]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


NETWORK = network()


def rows(count: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, 24)).astype(np.float32)


def compiled(
    devices: Any, lines: str | None, isolate: bool = False, **wishes: Any
) -> CompiledModel:
    return crosschip.compile(
        NETWORK,
        devices,
        placement=crosschip.PlacementOptions(mixed_precision=lines, isolate=isolate),
        **{"cache": False, **wishes},
    )


def exact(x: Array) -> Array:
    """The formula, in float64."""
    for weight in WEIGHTS:
        x = np.tanh(x.astype(np.float64) @ weight.astype(np.float64))
    return x


def devices_of(model: CompiledModel) -> dict[str, str | None]:
    return {decision.name: decision.device for decision in model.placement.decisions}


@pytest.mark.parametrize(("device", "precision"), REDUCED)
def test_the_error_falls_with_every_operator_that_is_listed(device: str, precision: str) -> None:
    """From the last to all of them; all are what float32 is, to the bit, for several sizes."""
    if is_refused(device, precision, lambda: compiled(device, LINES[0], precision=precision)):
        return
    errors = []
    inputs = [rows(3), rows(7)]
    for first in range(LAYERS, -1, -1):
        lines = "\n".join([*LINES[first:], *(["Tanh"] if first == 0 else [])])
        with compiled(device, lines, precision=precision) as model:
            made = [model(x) for x in inputs]
        errors.append(
            sum(float(np.linalg.norm(y - exact(x))) for x, y in zip(inputs, made, strict=True))
        )
    assert errors[0] > errors[2] > errors[4]
    assert errors[4] < 1e-5 < errors[0] / 50
    with compiled(device, None) as plain:
        for x, y in zip(inputs, made, strict=True):
            np.testing.assert_array_equal(y, plain(x))


@pytest.mark.parametrize(("device", "precision"), REDUCED[:2])
def test_what_is_listed_computes_as_in_float32_what_the_others_made(
    device: str, precision: str
) -> None:
    x = rows(5)
    with compiled(device, "MatMul::m3\nTanh::y", precision=precision) as model:
        between = model.placement.segments[-1].inputs[0]
        whole = model.placement.original
        made = model(x)
    head = Model("head", whole.inputs, whole.operations[:-2], {"t": between})
    tail = Model("tail", {"t": between}, whole.operations[-2:], whole.outputs)
    rough = crosschip.compile(head, device, precision=precision, cache=False)(x)
    np.testing.assert_array_equal(made, crosschip.compile(tail, device, cache=False)(rough))


def test_explaining_tells_the_line_and_the_device() -> None:
    placement = crosschip.explain(
        NETWORK,
        ["xla", "reference"],
        precision="bfloat16",
        placement=crosschip.PlacementOptions(mixed_precision="Tanh\nMatMul::m1"),
    )
    told = {decision.name: decision for decision in placement.decisions}
    (name,) = {o.name for o in placement.model.operations if o.outputs[0].name == "m1"}
    assert told[name].device == "xla/float32"
    reasons = told[name].reasons
    assert reasons["xla"].endswith("kept in float32 by line 2 of mixed_precision, 'MatMul::m1'")
    assert len(placement.in_float) == LAYERS + 1
    (other,) = {o.name for o in placement.model.operations if o.outputs[0].name == "m0"}
    assert told[other].device == "xla"
    assert (
        told[other]
        .reasons["xla/float32"]
        .endswith("computes in float32 what mixed_precision lists, and nothing else")
    )
    assert not placement.fallbacks


def test_it_goes_on_as_float32_where_the_first_device_is_kept_from_it() -> None:
    """Partitions and pins name the caller's devices, in whatever they compute."""
    both = ["xla", "openvino"]
    parted = crosschip.explain(
        NETWORK,
        both,
        precision="bfloat16",
        placement=crosschip.PlacementOptions(
            mixed_precision="Tanh", partition="Tanh::t0\nMatMul::m0"
        ),
    )
    places = {o.outputs[0].name: s.device for s in parted.segments for o in s.operations}
    assert places["t0"] == "openvino/float32"
    if is_offered("openvino", "bfloat16"):
        assert places["m0"] == "openvino"
    else:
        (refused,) = (decision for decision in parted.decisions if decision.device is None)
        assert refused.reasons["openvino"].endswith("computes in float32, not in bfloat16")
    assert (places["m1"], places["t1"]) == ("xla", "xla/float32")
    pinned = crosschip.explain(
        NETWORK,
        both,
        precision="bfloat16",
        placement=crosschip.PlacementOptions(mixed_precision="Tanh", pin={"Tanh::t1": "openvino"}),
    )
    places = {o.outputs[0].name: s.device for s in pinned.segments for o in s.operations}
    assert (places["t0"], places["t1"]) == ("xla/float32", "openvino/float32")


def test_a_chip_that_is_listed_in_both_precisions_is_not_added_to() -> None:
    with compiled(["xla/bfloat16", "xla"], "MatMul") as model:
        assert model.placement.devices == ("xla/bfloat16", "xla")
        assert set(devices_of(model).values()) == {"xla/bfloat16", "xla"}


def test_what_no_device_does_in_the_precision_stays_refused() -> None:
    """The devices in float32 are there for what is listed alone."""
    with pytest.raises(UnsupportedError, match="computes in float32, not in bfloat16"):
        compiled("reference", "Tanh", precision="bfloat16")
    all_spans = "Tanh\nMatMul"
    with compiled("reference", all_spans, precision="bfloat16") as model:
        np.testing.assert_allclose(model(rows(2)), exact(rows(2)), atol=1e-5)


def test_a_quantized_model_in_bfloat16() -> None:
    """What is listed is not rounded to eight bits, nor to sixteen."""
    x = image(1)
    options: dict[str, Any] = {
        "precision": "bfloat16",
        "placement": crosschip.PlacementOptions(mixed_precision="Conv\nMatMul"),
    }

    def compiled_pairs() -> crosschip.CompiledModel:
        return crosschip.compile(pairs(), "openvino", cache=False, **options)

    if is_refused("openvino", "bfloat16", compiled_pairs):
        return
    with compiled_pairs() as model:
        assert len(model.placement.in_float) == 3
        places = {d.type: d.device for d in model.placement.decisions}
        assert places["CONV_2D"] == places["MAT_MUL"] == "openvino/float32"
        steps = np.abs(model(x) - oracle(["first", "mixed", "second"], x)) / 0.5
        assert steps.max() < 1.5


def warnings_of(caplog: pytest.LogCaptureFixture, lines: str, **wishes: Any) -> list[str]:
    with caplog.at_level(logging.WARNING, "crosschip"):
        crosschip.explain(
            NETWORK,
            "xla",
            placement=crosschip.PlacementOptions(mixed_precision=lines),
            **wishes,
        )
    return [record.message for record in caplog.records]


def test_lines_without_effect_are_told(caplog: pytest.LogCaptureFixture) -> None:
    (told,) = warnings_of(caplog, "MatMull\nTanh", precision="bfloat16")
    assert told == (
        "mixed_precision, line 1: the model has no operator of type 'MatMull'; the nearest is "
        "'MatMul'"
    )
    caplog.clear()
    (told,) = warnings_of(caplog, "Tanh")
    assert told.endswith("'Tanh' names nothing quantized, and all else computes in float32 already")
    with pytest.raises(InputError, match=r"mixed_precision, line 2: ':x' has no operator type"):
        warnings_of(caplog, "Tanh\n:x", precision="bfloat16")


def test_integers_are_computed_as_before(caplog: pytest.LogCaptureFixture) -> None:
    nodes = [helper.make_node("Add", ["n", "n"], ["m"]), helper.make_node("Tanh", ["x"], ["y"])]
    ends = {
        "x": TensorProto.FLOAT,
        "n": TensorProto.INT32,
        "y": TensorProto.FLOAT,
        "m": TensorProto.INT32,
    }
    infos = {name: helper.make_tensor_value_info(name, type_, [2]) for name, type_ in ends.items()}
    graph = helper.make_graph(nodes, "integers", [infos["x"], infos["n"]], [infos["y"], infos["m"]])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with caplog.at_level(logging.WARNING, "crosschip"):
        found = crosschip.explain(
            file,
            "xla",
            precision="float16",
            placement=crosschip.PlacementOptions(mixed_precision="Add\nTanh"),
        )
    assert [record.message for record in caplog.records] == [
        "mixed_precision, line 1: 'Add' names nothing that computes on reals"
    ]
    assert [d.device for d in found.decisions if d.type == "TANH"] == ["xla/float32"]


def test_what_is_kept_is_of_the_lines(tmp_path: Path) -> None:
    """By plans, under a token, and in a file."""
    x = rows(4)
    path = tmp_path / "network.onnx"
    onnx.save(NETWORK, path)
    for token in (False, "mixed"):
        made: dict[str, Array] = {}
        words: list[str] = []
        for lines in ("Tanh", "Tanh", "MatMul", "MatMul"):
            with crosschip.compile(
                path,
                "xla",
                shapes={"rows": 4},
                precision="bfloat16",
                placement=crosschip.PlacementOptions(mixed_precision=lines),
                cache=crosschip.CacheOptions(location=tmp_path / str(token), token=token),
            ) as model:
                words.append(model.report.cache)
                y = made.setdefault(lines, model(x))
                np.testing.assert_array_equal(model(x), y)
                loaded = crosschip.load_compiled(model.to_bytes())
                np.testing.assert_array_equal(loaded(x), y)
                loaded.close()
        assert words == ["miss", "hit", "miss", "hit"]
        assert not np.array_equal(made["Tanh"], made["MatMul"])


class Rough(ReferenceDevice):
    """A device that rounds what it makes to bfloat16, if that is wanted."""

    name = "rough"
    closed = 0

    def capabilities(self) -> Capabilities:
        return Capabilities(precisions=frozenset({Precision.FLOAT32, Precision.BFLOAT16}))

    def compile(self, model: Model, options: Options) -> Program:
        return self._in(super().compile(model, Options()), options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._in(super().load(saved, model, Options()), options)

    def _in(self, program: Program, options: Options) -> Program:
        return _Rounded(program) if options.precision is Precision.BFLOAT16 else program

    def close(self) -> None:
        self.closed += 1


class _Rounded(Program):
    def __init__(self, exact: Program) -> None:
        self._exact = exact

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        made = self._exact.run(inputs)
        return [value.astype(ml_dtypes.bfloat16).astype(np.float32) for value in made]

    def save(self) -> bytes | None:
        return self._exact.save()


def test_an_instance_computes_in_both_and_stays_open() -> None:
    device = Rough()
    x = rows(2)
    wishes: dict[str, Any] = {"precision": "bfloat16", "shapes": {"rows": 2}}
    with compiled([device], "MatMul::m3\nTanh::y", **wishes) as model:
        assert set(devices_of(model).values()) == {"rough", "rough/float32"}
        between = model.placement.segments[0].outputs[0].name
        assert between == "t2"
        made = model(x)
        assert not np.array_equal(made, exact(x).astype(np.float32))
        file = model.to_bytes()
    with crosschip.load_compiled(file, devices=[device]) as loaded:
        np.testing.assert_array_equal(loaded(x), made)
    assert device.closed == 0
    with compiled([device], "MatMul\nTanh", precision="bfloat16") as model:
        np.testing.assert_allclose(model(x), exact(x), atol=1e-5)


def test_a_driver_is_one_for_both() -> None:
    with compiled("xla", "MatMul::m3\nTanh::y", precision="bfloat16", isolate=True) as model:
        assert set(devices_of(model).values()) == {"xla@driver", "xla/float32@driver"}
        with compiled("xla", "MatMul::m3\nTanh::y", precision="bfloat16") as here:
            np.testing.assert_array_equal(model(rows(2)), here(rows(2)))
