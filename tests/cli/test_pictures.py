"""Pictures as inputs of commands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image
from tests.cli.conftest import Crosschip

from crosschip import Preprocess
from crosschip.ir import Array
from crosschip.preprocessing import read_picture

PLAIN = ("--devices", "onnxruntime", "--no-cache")
IMAGENET = (
    *("--resize", "12", "--fit", "shorter", "--crop", "8x8", "--antialias"),
    *("--mean", "123.675,116.28,103.53", "--scale", "1/58.395,1/57.12,1/57.375"),
)
SETTINGS = Preprocess(
    resize=12,
    fit="shorter",
    crop=8,
    antialias=True,
    mean=(123.675, 116.28, 103.53),
    scale=(1 / 58.395, 1 / 57.12, 1 / 57.375),
)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A model that outputs its input, a picture of 8 by 8."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", 3, 8, 8]) for n in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    graph = helper.make_graph([node], "mirror", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph), tmp_path / "mirror.onnx")
    return tmp_path / "mirror.onnx"


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A picture in a file."""
    noise = np.random.default_rng(0).integers(0, 256, (30, 20, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "photo.jpg")
    return tmp_path / "photo.jpg"


def saved(folder: Path) -> Array:
    """Read the only output that a command saved."""
    (path,) = folder.glob("*.npy")
    array: Array = np.load(path)
    return array


def test_run(crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path) -> None:
    given = ("--input", f"x={photo}", *IMAGENET, "--save", tmp_path / "out")
    outcome = crosschip("run", mirror, *PLAIN, *given)
    assert (outcome.status, outcome.err) == (0, "")
    expected = SETTINGS.apply(read_picture(photo))
    np.testing.assert_allclose(saved(tmp_path / "out"), expected, atol=0.02)


def test_without_options_a_picture_is_resized(
    crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path
) -> None:
    given = ("--input", f"x={photo}", "--save", tmp_path / "out")
    assert crosschip("run", mirror, *PLAIN, *given).status == 0
    expected = Preprocess(resize=8).apply(read_picture(photo))
    np.testing.assert_allclose(saved(tmp_path / "out"), expected, atol=1)


def test_padding(crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path) -> None:
    given = ("--input", f"x={photo}", "--resize", "8", "--fit", "longer", "--position", "start")
    more = ("--pad-value", "114,0,7", "--color", "BGR", "--save", tmp_path / "out")
    assert crosschip("run", mirror, *PLAIN, *given, *more).status == 0
    settings = Preprocess(
        resize=8, fit="longer", position="start", pad_value=(114, 0, 7), color="BGR"
    )
    expected = settings.apply(read_picture(photo))
    np.testing.assert_allclose(saved(tmp_path / "out"), expected, atol=1)


def test_pictures_in_arrays(
    crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path
) -> None:
    pictures = np.stack([read_picture(photo)] * 2)
    np.save(tmp_path / "pictures.npy", pictures)
    given = ("--input", f"x={tmp_path / 'pictures.npy'}", *IMAGENET, "--save", tmp_path / "out")
    assert crosschip("run", mirror, *PLAIN, *given).status == 0
    expected = SETTINGS.apply(pictures)
    np.testing.assert_allclose(saved(tmp_path / "out"), expected, atol=0.02)


def test_a_compiled_model_takes_pictures(
    crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path
) -> None:
    compiled = tmp_path / "mirror.chips"
    assert crosschip("compile", mirror, *PLAIN, *IMAGENET, "-o", compiled).status == 0
    given = ("--input", f"x={photo}")
    outcome = crosschip("run", compiled, *given, "--save", tmp_path / "out")
    assert (outcome.status, outcome.err) == (0, "")
    expected = SETTINGS.apply(read_picture(photo))
    np.testing.assert_allclose(saved(tmp_path / "out"), expected, atol=0.02)
    assert crosschip("bench", compiled, *given, "--runs", "2").status == 0
    outcome = crosschip("run", compiled, *given, "--resize", "9")
    assert outcome.status == 2
    assert "holds a compiled model" in outcome.err


def test_a_compiled_model_without_preprocessing(
    crosschip: Crosschip, mirror: Path, photo: Path, tmp_path: Path
) -> None:
    compiled = tmp_path / "mirror.chips"
    assert crosschip("compile", mirror, *PLAIN, "-o", compiled).status == 0
    outcome = crosschip("run", compiled, "--input", f"x={photo}")
    assert outcome.status == 1
    assert "takes no picture like" in outcome.err
    assert "compile the model with this --input" in outcome.err


def test_explain_shows_the_operations(crosschip: Crosschip, mirror: Path, photo: Path) -> None:
    outcome = crosschip("explain", mirror, *PLAIN, "--input", f"x={photo}", "--json")
    types = {operation["type"] for operation in outcome.document["operations"]}
    assert types >= {"GATHER", "TRANSPOSE", "FLOOR"}


def test_bench(crosschip: Crosschip, mirror: Path, photo: Path) -> None:
    outcome = crosschip("bench", mirror, *PLAIN, "--input", f"x={photo}", "--runs", "2", "--json")
    assert outcome.document["runs"] == 2
    outcome = crosschip("bench", mirror, *PLAIN, *IMAGENET, "--against", "onnxruntime")
    assert outcome.status == 2
    assert "takes no pictures" in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--resize", "8x8x8"), "'8x8x8' is not like 480x640 or 224"),
        (("--crop", "big"), "'big' is not like 480x640 or 224"),
        (("--pad-value", "gray"), "for --pad-value: 'gray' is not like 0.5"),
        (("--mean", "1;2"), "'1;2' is not like 0.5, 1/255 or 123.7,116.3,103.5"),
        (("--scale", "1/0"), "'1/0' is not like"),
        (("--fit", "longest"), "did you mean 'longer'"),
        (("--color", "CMYK"), "choose one of RGB, BGR, GRAY"),
        (("--layout", "NHWC"), "set layout or color"),
        (("--input", "x=missing.jpg"), "missing.jpg: cannot be read as a picture"),
        (("--input", "z=missing.jpg"), "no input 'z'"),
    ],
)
def test_what_is_wrong(
    crosschip: Crosschip, mirror: Path, options: tuple[str, ...], message: str
) -> None:
    outcome = crosschip("run", mirror, *PLAIN, *options)
    assert outcome.status in (1, 2)
    assert message in " ".join(outcome.err.split())
