from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosschip.demo.picture import DEMO_PICTURE, load, planes


def test_planes_are_bgr_from_minus_one_to_one() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    result = planes(picture, 7, 5)
    assert result.dtype == np.float32
    assert result.flags.c_contiguous
    for plane, channel in enumerate((2, 1, 0)):
        expected = (picture[:, :, channel].astype(np.float64) / 255 - 0.5) / 0.5
        np.testing.assert_allclose(result[plane], expected, atol=1e-6)


def test_planes_resize_bilinearly() -> None:
    ramp = np.repeat(np.arange(0, 200, 20).astype(np.uint8)[np.newaxis, :, np.newaxis], 4, axis=0)
    result = planes(ramp.repeat(3, axis=2), 20, 8)
    # Centres of the result lie a quarter of a source pixel left and right of the source's.
    centres = np.clip((np.arange(20) + 0.5) / 2 - 0.5, 0, 9)
    expected = np.broadcast_to(centres * 20 / 127.5 - 1, (3, 8, 20))
    np.testing.assert_allclose(result, expected, atol=0.5 / 127.5 + 1e-6)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_every_colour_mode_becomes_rgb_bytes(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "picture.tiff"
    Image.new("RGB", (6, 4), "white").convert(mode).save(file)
    picture = load(file)
    assert picture.shape == (4, 6, 3)
    assert picture.dtype == np.uint8
    assert picture.min() >= 254


def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path) -> None:
    grey = np.array([[0, 256, 32768, 65535]], np.uint16)
    Image.fromarray(grey).save(tmp_path / "picture.png")
    assert load(tmp_path / "picture.png")[0, :, 0].tolist() == [0, 0, 127, 255]


def test_transparent_becomes_white(tmp_path: Path) -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (200, 100, 0, 255))
    image.save(tmp_path / "picture.png")
    assert load(tmp_path / "picture.png").tolist() == [[[255, 255, 255], [200, 100, 0]]]


def test_turned_upright_as_exif_says(tmp_path: Path) -> None:
    image = Image.new("RGB", (3, 2))
    image.putpixel((0, 0), (255, 0, 0))
    exif = Image.Exif()
    exif[0x0112] = 6  # Orientation: to be turned clockwise by 90 degrees.
    image.save(tmp_path / "picture.png", exif=exif)
    picture = load(tmp_path / "picture.png")
    assert picture.shape == (3, 2, 3)
    assert picture[0, 1].tolist() == [255, 0, 0]


@pytest.mark.parametrize("content", [b"", b"no picture", DEMO_PICTURE.read_bytes()[:3000]])
def test_not_a_whole_picture(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(content)
    with pytest.raises(OSError, match=r"identify|truncated"):
        load(tmp_path / "picture.png")
