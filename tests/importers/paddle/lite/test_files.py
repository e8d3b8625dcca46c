"""`.nb` files of Paddle Lite's tool, compared with Paddle's outputs; and damaged files."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.importers.paddle.helpers import VALUE, outputs, small
from tests.importers.paddle.lite import naive_writer

from crosschip.importers import load
from crosschip.importers.paddle import load_lite
from crosschip.importers.paddle.files import is_lite_content
from crosschip.importers.paddle.lite import flat
from crosschip.ir import Error, ModelError, ModelFileError
from crosschip.ir.files import Held

RECORDED = Path(__file__).parent / "recorded"
"""Models that Paddle Lite 2.13 has written, with Paddle's output; see `record`."""

NAMES = ("x86", "arm", "opencl", "x86-1")


@pytest.mark.parametrize("name", NAMES)
def test_an_optimised_model_computes_what_paddle_does(name: str) -> None:
    oracle = np.load(RECORDED / "network.npz")
    path = RECORDED / f"network-{name}.nb"
    for source in (path, path.read_bytes()):
        (result,) = outputs(load(source), {"x": oracle["x"]})
        np.testing.assert_allclose(result, oracle["y"], rtol=1e-5, atol=1e-6)


def test_weights_that_are_integers_stand_for_reals() -> None:
    oracle = np.load(RECORDED / "network.npz")
    model = load(RECORDED / "network-arm-int8.nb")
    (result,) = outputs(model, {"x": oracle["x"]})
    error = np.abs(result - oracle["y"]).max() / np.abs(oracle["y"]).max()
    assert 1e-4 < error < 0.02
    kept = [o.type.quantization is not None for o in model.constants if len(o.type.shape or ()) > 1]
    assert kept.count(True) >= 9


@pytest.mark.parametrize("name", ["quantized.pdmodel", "quantized-arm.nb"])
def test_a_quantized_model_computes_what_paddle_does(name: str) -> None:
    """The model has operators that only record scales, and a kernel with int8 output."""
    oracle = np.load(RECORDED / "quantized.npz")
    content = (RECORDED / name).read_bytes()
    assert b"int8out" in content or b"only_observer" in content
    (result,) = outputs(load(RECORDED / name), {"x": oracle["x"]})
    np.testing.assert_allclose(result, oracle["y"], rtol=1e-5, atol=1e-6)


def test_what_was_recorded_has_what_the_optimiser_makes() -> None:
    contents = {name: (RECORDED / f"network-{name}.nb").read_bytes() for name in NAMES}
    assert [content[0] for content in contents.values()] == [2, 2, 2, 1]
    for text in (b"act_type", b"fusion_elementwise_add_activation", b"hard_swish_scale"):
        assert all(text in content for content in contents.values())
    for name, text in (("opencl", b"io_copy"), ("opencl", b"layout"), ("arm", b"in_num_col_dims")):
        assert text in contents[name]


def test_large_parameters_stay_in_their_file(tmp_path: Path) -> None:
    writer = small()
    value = np.arange(300 * 100, dtype=np.float32).reshape(300, 100)
    writer.parameter("large", value)
    writer.variable("z", "float32", [-1, 100])
    writer.variable("wide", "float32", [-1, 300])
    writer.operator("tile", {"X": "y"}, {"Out": "wide"}, {"repeat_times": [1, 100]})
    writer.operator("matmul_v2", {"X": "wide", "Y": "large"}, {"Out": "z"})
    writer.output("z")
    path = tmp_path / "model.nb"
    path.write_bytes(naive_writer.file(writer))
    model = load(path)
    x = np.ones((2, 3), np.float32)
    assert model.name == "model"
    np.testing.assert_allclose(outputs(model, {"x": x})[1], np.tile(x @ VALUE, 100) @ value)
    content = path.read_bytes()
    path.write_bytes(content + b"more")
    with pytest.raises(ModelFileError, match="has changed"):
        outputs(model, {"x": x})


def test_the_oldest_form_is_read_as_its_definition_says() -> None:
    model = load(naive_writer.file(small()))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(outputs(model, {"x": x})[0], x @ VALUE)
    open_ = load_lite(naive_writer.file(small()), {"x": (4, 3)})
    assert [operand.type.shape for operand in open_.inputs.values()] == [(4, 3)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (struct.pack("<H16sQ", 3, b"v3", 1) + b"\0", "version 3|no importer|not a model file"),
        (struct.pack("<H16sQ", 2, b"v2", 99) + b"\0" * 9, "its program ends at 125"),
        (b"\2\0", "damaged"),
        (struct.pack("<H16sQ", 2, b"v2", 8) + b"\xff" * 40, "leads to byte"),
        (struct.pack("<H16sQ", 0, b"v2", 8) + b"\xff" * 40, "a list of"),
    ],
)
def test_a_file_of_another_form_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "model.nb"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=why) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_what_is_no_file_of_paddle_lites_is_not_taken_for_one() -> None:
    assert is_lite_content((RECORDED / "network-arm.nb").read_bytes())
    for content in (b"", b"\2\0", b"\n" * 30, struct.pack("<H16sQ", 2, b"\xff", 1) + b"\0"):
        assert not is_lite_content(content)


def test_parts_that_belong_to_several_others_are_refused() -> None:
    """Otherwise a file of a few kilobytes could expand to gigabytes."""
    content = struct.pack("<I", 1000) + bytes(1000)
    buffer = flat.Buffer(Held(content), 0, len(content))
    assert len(buffer.numbers(0, "?")) == 1000
    with pytest.raises(ModelError, match="belongs to several others"):
        buffer.text(0)


@pytest.mark.parametrize("name", ["x86", "x86-1", "arm-int8", "naive"])
@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_an_error_or_does_no_harm(name: str, data: st.DataObject) -> None:
    content = bytearray(_whole(name))
    end = min(len(content), 40000)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(18, end - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    with contextlib.suppress(Error):
        load_lite(bytes(content[:cut]))


def _whole(name: str) -> bytes:
    if name == "naive":
        return naive_writer.file(small())
    return (RECORDED / f"network-{name}.nb").read_bytes()
