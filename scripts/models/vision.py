"""Write an image classifier of `paddle.vision.models`, with Paddle's outputs for it.

Run inside an oracle environment: python vision.py NAME DIRECTORY
"""

import sys
from pathlib import Path

from network import export, pictures, prepare
from oracle import record
from paddle.vision import models


def main(name: str, directory: Path) -> None:
    """Write `inference.*` and `oracle-{1,4}.npz`, input [N, 3, 224, 224], to the directory."""
    net = getattr(models, name)()
    prepare(net, pictures(8, 224, seed=0))
    files = export(net, directory, [-1, 3, 224, 224])
    images = pictures(4, 224, seed=1)
    record(files, directory / "oracle", {"1": images[:1], "4": images})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
