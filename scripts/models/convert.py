"""Convert the networks of Paddle 3 beside this directory to ONNX.

Run inside an oracle environment: python convert.py NAME DIRECTORY
"""

import shutil
import sys
from pathlib import Path

import paddle2onnx

OPSET = 17


def main(directory: Path) -> None:
    """Write `<model>.onnx` and `<model>.oracle-{1,4}.npz` for each model of `../paddle3`."""
    for source in sorted((directory.parent / "paddle3").iterdir()):
        # Without an optimiser: paddle2onnx's default installs packages by itself and then fails.
        paddle2onnx.export(
            str(source / "inference.json"),
            str(source / "inference.pdiparams"),
            str(directory / f"{source.name}.onnx"),
            opset_version=OPSET,
            optimize_tool="None",
        )
        for oracle in source.glob("oracle-*.npz"):
            shutil.copy(oracle, directory / f"{source.name}.{oracle.name}")


if __name__ == "__main__":
    main(Path(sys.argv[2]))
