"""`read_picture` on files of all kinds, with Pillow's own pixels or hand-written ones as oracle."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import crosschip
from crosschip.ir import Array, InputError
from crosschip.preprocessing import is_picture, read_picture

COLORS = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
"""A picture without symmetry."""


def saved(array: Array, path: Path, **options: object) -> Path:
    """Write a picture with Pillow."""
    Image.fromarray(array).save(path, **options)  # type: ignore[arg-type]
    return path


def by_pillow(path: Path) -> Array:
    """Read a picture with Pillow."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".ppm", ".webp"])
def test_lossless_formats(tmp_path: Path, suffix: str) -> None:
    options = {"lossless": True} if suffix == ".webp" else {}
    path = saved(COLORS, tmp_path / f"x{suffix}", **options)
    np.testing.assert_array_equal(read_picture(path), COLORS)
    assert is_picture(path)


def test_jpeg_is_decoded_as_pillow_decodes_it(tmp_path: Path) -> None:
    path = saved(COLORS, tmp_path / "x.JPG", format="JPEG")
    picture = read_picture(str(path))
    np.testing.assert_array_equal(picture, by_pillow(path))
    assert picture.dtype == np.uint8
    assert picture.flags.c_contiguous
    assert picture.flags.writeable
    assert is_picture(path)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_as_exif_says(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = saved(COLORS, tmp_path / "x.png", exif=exif)
    upright = COLORS.transpose(1, 0, 2) if orientation > 4 else COLORS
    # EXIF 2.3, 4.6.4: where row 0 and column 0 are.
    rows, columns = {
        1: (1, 1), 2: (1, -1), 3: (-1, -1), 4: (-1, 1), 5: (1, 1), 6: (1, -1), 7: (-1, -1),
        8: (-1, 1),
    }[orientation]  # fmt: skip
    np.testing.assert_array_equal(read_picture(path), upright[::rows, ::columns])


def test_gray(tmp_path: Path) -> None:
    gray = COLORS[:, :, 0].copy()
    expected = np.repeat(gray[:, :, None], 3, 2)
    np.testing.assert_array_equal(read_picture(saved(gray, tmp_path / "x.png")), expected)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_the_high_byte_of_sixteen_bits(tmp_path: Path, suffix: str) -> None:
    deep = np.arange(0, 2**16, 257, dtype=np.uint16).reshape(16, 16) - np.uint16(1)
    expected = np.repeat((deep >> 8).astype(np.uint8)[:, :, None], 3, 2)
    np.testing.assert_array_equal(read_picture(saved(deep, tmp_path / f"x{suffix}")), expected)


def test_bilevel(tmp_path: Path) -> None:
    black = COLORS[:, :, 0] > 128
    Image.fromarray(black).save(tmp_path / "x.png")
    expected = np.repeat(np.where(black, 255, 0)[:, :, None], 3, 2)
    np.testing.assert_array_equal(read_picture(tmp_path / "x.png"), expected)


def test_palette(tmp_path: Path) -> None:
    image = Image.fromarray(COLORS).quantize(16)
    image.save(tmp_path / "x.gif")
    picture = read_picture(tmp_path / "x.gif")
    np.testing.assert_array_equal(picture, by_pillow(tmp_path / "x.gif"))


def test_transparency_becomes_white(tmp_path: Path) -> None:
    alpha = np.dstack([COLORS, np.full((5, 7), 255, np.uint8)])
    alpha[1, 2, 3], alpha[3, 4, 3] = 0, 128
    picture = read_picture(saved(alpha, tmp_path / "x.png"))
    expected = COLORS.copy()
    expected[1, 2] = 255
    half = COLORS[3, 4] * (128 / 255) + 255 * (127 / 255)
    np.testing.assert_allclose(picture[3, 4], half, atol=1)
    expected[3, 4] = picture[3, 4]
    np.testing.assert_array_equal(picture, expected)


def test_transparent_color_of_a_palette(tmp_path: Path) -> None:
    image = Image.fromarray(np.zeros((2, 2), np.uint8), "L").convert("P")
    image.save(tmp_path / "x.png", transparency=bytes([0] * 256))
    np.testing.assert_array_equal(read_picture(tmp_path / "x.png"), np.full((2, 2, 3), 255))


def test_first_picture_of_an_animation(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (3, 2), color) for color in ("red", "blue")]
    frames[0].save(tmp_path / "x.webp", save_all=True, append_images=frames[1:], lossless=True)
    np.testing.assert_array_equal(read_picture(tmp_path / "x.webp")[0, 0], [255, 0, 0])


def test_cmyk(tmp_path: Path) -> None:
    Image.new("CMYK", (2, 3), (0, 255, 255, 0)).save(tmp_path / "x.tif")
    np.testing.assert_array_equal(read_picture(tmp_path / "x.tif")[0, 0], [255, 0, 0])


def test_one_pixel(tmp_path: Path) -> None:
    assert read_picture(saved(COLORS[:1, :1], tmp_path / "x.png")).shape == (1, 1, 3)


def test_reals_have_no_known_range(tmp_path: Path) -> None:
    path = saved(np.zeros((2, 2), np.float32), tmp_path / "x.tif")
    with pytest.raises(InputError, match=r"x\.tif.*reals.*convert"):
        read_picture(path)


def huge_png(path: Path, side: int) -> Path:
    """Write a PNG that claims to be very large and is a few bytes long."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )
    return path


@pytest.mark.parametrize("side", [20_000, 2**31 - 1])
def test_a_file_that_claims_to_be_huge(tmp_path: Path, side: int) -> None:
    with pytest.raises(InputError, match="cannot be read as a picture"):
        read_picture(huge_png(tmp_path / "x.png", side))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.jpg", b"", "not a picture"),
        ("text.png", b"a text and no picture", "not a picture"),
        ("page.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture"),
        ("array.npy", b"\x93NUMPY\x01\x00", "not a picture"),
    ],
)
def test_what_is_no_picture(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}.*{reason}.*convert"):
        read_picture(tmp_path / name)


def test_damaged_files_raise_or_give_a_picture(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    refused = 0
    for suffix in (".png", ".jpg", ".gif", ".tif", ".webp", ".bmp", ".ppm"):
        content = saved(COLORS, tmp_path / f"whole{suffix}").read_bytes()
        for number in range(60):
            damaged = bytearray(content[: generator.integers(1, len(content))])
            for _ in range(3):
                damaged[generator.integers(len(damaged))] = generator.integers(256)
            path = tmp_path / f"{number}{suffix}"
            path.write_bytes(damaged)
            try:
                picture = read_picture(path)
            except InputError:  # and nothing else
                refused += 1
            else:
                assert picture.dtype == np.uint8
                assert picture.shape[2] == 3
    assert 300 < refused < 420


def test_cut_short(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).integers(0, 256, (64, 64, 3), np.uint8)
    path = saved(noise, tmp_path / "x.jpg")
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(InputError, match=r"x\.jpg: cannot be read as a picture"):
        read_picture(path)


def test_missing_files_folders_and_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    for path in (tmp_path / "missing.jpg", tmp_path, tmp_path / "pipe.jpg"):
        with pytest.raises(InputError, match=str(path)):
            read_picture(path)


def test_without_pillow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("crosschip.preprocessing.pictures.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "crosschip\[pictures\]"'):
        read_picture(tmp_path / "x.jpg")


def test_the_front_door_has_it() -> None:
    assert crosschip.read_picture is read_picture
