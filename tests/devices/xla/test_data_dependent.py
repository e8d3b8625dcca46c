"""Operators with data-dependent output sizes: padded on the chip, cut on the host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.devices.checks import overlapping_boxes, tied_scores
from tests.devices.xla.conftest import CHIP

import crosschip
from crosschip.devices.xla import XlaDevice
from crosschip.devices.xla.engine import Engine
from crosschip.hal import HostBuffer, Options, Program
from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices

if TYPE_CHECKING:
    from tests.devices.conftest import Checker
    from tests.devices.xla.conftest import Once

REAL = TensorProto.FLOAT
WHOLE = TensorProto.INT64


def written(
    path: Path,
    nodes: Sequence[Any],
    inputs: Sequence[tuple[str, int, Sequence[int | str]]],
    outputs: Sequence[tuple[str, int]],
    constants: dict[str, Any],
) -> Path:
    """Return an ONNX file."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each, None) for each in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 18)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    )
    return path


def detector(path: Path) -> Path:
    """Return convolutions that score 60 boxes in 4 classes, and YOLO's post-processing."""
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["map"]),
        helper.make_node("Reshape", ["map", "flat"], ["numbers"]),
        helper.make_node("Sigmoid", ["numbers"], ["scores"]),
        helper.make_node(
            "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "enough"], ["chosen"]
        ),
        helper.make_node("Gather", ["chosen", "last"], ["places"], axis=1),
        helper.make_node("Gather", ["boxes", "places"], ["found"], axis=1),
        helper.make_node("Shape", ["chosen"], ["size"]),
        helper.make_node("GatherND", ["scores", "chosen"], ["marks"]),
        helper.make_node("TopK", ["marks", "one"], ["best", "which"]),
    ]
    constants = {
        "filters": random.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "flat": np.array([1, 4, 60]),
        "boxes": overlapping_boxes(1, 60),
        "most": np.array([7]),
        "overlap": np.array([0.4], np.float32),
        "enough": np.array([0.9], np.float32),
        "last": np.array(2),
        "one": np.array([1]),
    }
    outputs = [("found", REAL), ("size", WHOLE), ("marks", REAL), ("best", REAL)]
    return written(path, nodes, [("image", REAL, [1, 3, 8, 12])], outputs, constants)


def masked(path: Path) -> Path:
    """Return the elements of an image above 1, and the unique ones."""
    nodes = [
        helper.make_node("Greater", ["image", "one"], ["mask"]),
        helper.make_node("NonZero", ["mask"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["places"]),
        helper.make_node("GatherND", ["image", "places"], ["left"]),
        helper.make_node("Round", ["left"], ["rounded"]),
        helper.make_node("Unique", ["rounded"], ["values", "first", "inverse", "counts"]),
        helper.make_node("ReduceSum", ["left"], ["sum"], keepdims=0),
    ]
    inputs = [("image", REAL, ["H", "W"])]
    outputs = [("places", WHOLE), ("values", REAL), ("inverse", WHOLE), ("counts", WHOLE)]
    one = {"one": np.array(1, np.float32)}
    return written(path, nodes, inputs, [*outputs, ("sum", REAL)], one)


@pytest.mark.parametrize("write", [detector, masked])
def test_models_whose_sizes_depend_on_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """Compared with ONNX Runtime; with the cache, a second process compiles nothing."""
    path = write(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(1)
    shape = (1, 3, 8, 12) if write is detector else (6, 9)
    images = [random.normal(size=shape).astype(np.float32) * scale for scale in (1, 0.4, 1.5, 1)]
    expected = [session.run(None, {"image": image}) for image in images]
    assert len({len(outputs[0]) + outputs[0].size for outputs in expected}) > 1
    for attempt in range(2):
        if attempt:
            monkeypatch.setattr(Engine, "_executable", None)
        with crosschip.compile(path, f"xla:{CHIP}", cache=tmp_path / "cache") as compiled:
            for image, wanted in zip(images, expected, strict=True):
                made = list(compiled.run({"image": image}).values())
                for one, other in zip(made, wanted, strict=True):
                    assert one.dtype == other.dtype
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_nothing_may_be_found(tmp_path: Path) -> None:
    path = masked(tmp_path / "model.onnx")
    with crosschip.compile(path, f"xla:{CHIP}", cache=False) as compiled:
        places, values, inverse, counts, total = compiled(np.zeros((4, 5), np.float32))
    assert [each.shape for each in (places, values, inverse, counts)] == [(0, 2), (0,), (0,), (0,)]
    assert total == 0


def test_such_an_operation_is_compiled_apart_and_once(device: XlaDevice, check: Checker) -> None:
    def build(b: Builder, x: Operand) -> Operand:
        return b.add(NonZero, b.add(NonZero, x))

    model = check.built(build, [np.zeros((3, 4), np.float32)])
    with crosschip.compile(model, [device], cache=False) as compiled:
        placement = compiled.placement
        assert [segment.device for segment in placement.segments] == [device.name] * 2
        assert placement.shape_strategies[0] == "fixed"
        assert placement.shape_strategies[1].startswith("a program a shape")
        for count in (0, 2, 12):
            x = np.zeros((3, 4), np.float32)
            x.flat[:count] = 1
            np.testing.assert_array_equal(compiled(x), np.nonzero(np.nonzero(x)))


def test_sizes_and_ranks_may_be_open_besides(check: Checker) -> None:
    check(lambda b, x: b.add(NonZero, x), np.eye(3, 4, dtype=np.float32))
    check(
        lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs, 3, 0.4, 0.2),
        *(overlapping_boxes(2, 9), tied_scores(2, 3, 9)),
    )


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (3, 4, 2)])
def test_places_of_what_is_not_zero(once: Once, shape: tuple[int, ...]) -> None:
    whole = np.random.default_rng(2).integers(-1, 2, shape)
    for dtype in (np.float16, np.bool_):
        once(lambda b, x: b.add(NonZero, x), np.asarray(whole.astype(dtype)))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((), None), ((0,), None), ((7, 3), None), ((9, 2), 0), ((2, 9, 2), -2), ((0, 2), 0)],
)
def test_what_is_there_but_once(
    once: Once, shape: tuple[int, ...], axis: int | None, ordered: bool
) -> None:
    whole = np.random.default_rng(3).integers(-1, 2, shape)
    signed = np.where(np.arange(whole.size).reshape(shape) % 2, -0.0, 0.0) + whole
    for array in (whole, signed.astype(np.float32)):
        once(lambda b, x: b.add_all(Unique, x, axis, ordered), np.asarray(array))


@pytest.mark.parametrize(
    ("most", "overlap", "score", "center"),
    [(0, 0.1, 0.0, False), (2, 0.5, 0.3, True), (50, 0.1, 0.0, True), (50, 1.0, -np.inf, False)],
)
def test_indices_of_boxes(
    once: Once, most: int, overlap: float, score: float, center: bool
) -> None:
    once(
        lambda b, *xs: b.add(NonMaxSuppressionIndices, *xs, most, overlap, score, center),
        *(overlapping_boxes(2, 20), tied_scores(2, 3, 20)),
    )


@pytest.mark.parametrize("of_regions", [False, True])
@pytest.mark.parametrize(
    ("first", "last", "eta"),
    [(-1, -1, 0.8), (6, -1, 1.0), (40, 5, 1.0), (3, 4, 0.8), (0, 3, 1.0), (3, 0, 1.0)],
)
def test_rows_of_boxes(once: Once, of_regions: bool, first: int, last: int, eta: float) -> None:
    """Limits before and after, a shrinking threshold, boxes per class."""
    whole = (overlapping_boxes(2, 20), tied_scores(2, 3, 20))
    given = (
        (overlapping_boxes(20, 3), tied_scores(20, 3), np.array([12, 0, 8], np.int32))
        if of_regions
        else whole
    )
    once(
        lambda b, *xs: b.add_all(
            NonMaxSuppression,
            *xs,
            background_label=1,
            score_threshold=0.1,
            nms_top_k=first,
            nms_threshold=0.6,
            nms_eta=eta,
            keep_top_k=last,
            normalized=not of_regions,
            return_index=True,
        ),
        *given,
    )


@pytest.fixture
def program(device: XlaDevice, check: Checker) -> Program:
    model = check.built(lambda b, x: b.add(NonZero, x), [np.zeros((2, 3), np.float32)])
    return device.compile(model, Options())


def test_buffers_and_saved_programs(device: XlaDevice, check: Checker, program: Program) -> None:
    model = check.built(lambda b, x: b.add(NonZero, x), [np.zeros((2, 3), np.float32)])
    x = np.array([[0, 2, 0], [3, 0, 4]], np.float32)
    expected = np.array(np.nonzero(x))
    given = device.allocate(ElementType.FLOAT32, (2, 3))
    given.write(x)
    place = HostBuffer(np.zeros((2, 3), np.int64))
    saved = program.save()
    assert saved is not None
    for one in (program, device.load(saved, model, Options())):
        (made,) = one.run([x])
        np.testing.assert_array_equal(made, expected)
        assert made.flags.owndata
        submission = one.submit([given], [place], [])
        assert submission.outputs == [place]
        np.testing.assert_array_equal(place.array(), expected)
        place.write(np.zeros((2, 3), np.int64))
        (buffer,) = one.submit([HostBuffer(x * 0)], [], []).outputs
        assert buffer.shape == (2, 0)


def test_a_model_of_such_an_operation_is_saved(check: Checker, tmp_path: Path) -> None:
    model = check.built(lambda b, x: b.add(NonZero, x), [np.zeros((2, 3), np.float32)])
    x = np.eye(2, 3, dtype=np.float32)
    with crosschip.compile(model, f"xla:{CHIP}", cache=False) as compiled:
        compiled.save(tmp_path / "model.chipc")
    with crosschip.load_compiled(tmp_path / "model.chipc") as loaded:
        np.testing.assert_array_equal(loaded(x), np.nonzero(x))


def test_outputs_that_are_kept_are_read_again(check: Checker) -> None:
    model = check.built(
        lambda b, x: b.add(NonZero, x), [np.zeros((2, 3), np.int64)], check.symbolic
    )
    x = np.array([[5, 0, 7], [0, 0, 2]])
    (name,), (output,) = model.inputs, model.outputs
    with crosschip.compile(model, f"xla:{CHIP}", cache=False) as compiled:
        kept = compiled.run({name: x}, keep=[output])[output]
        assert kept.shape == (2, 3)
        again = compiled.run({name: kept})[output]
    np.testing.assert_array_equal(again, np.nonzero(np.nonzero(x)))
