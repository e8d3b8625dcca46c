"""Compiling for `"auto"` with a cache folder, and counting whether anything is measured."""

import json
import sys
from unittest.mock import patch

import crosschip
from crosschip.runtime.device_timing import measure


def main(path: str, shapes: str, cache: str) -> None:
    """Print what was chosen, and how often was measured.

    Args:
        path: of the model.
        shapes: of the inputs by name, as JSON.
        cache: a folder.
    """
    with (
        patch("crosschip.runtime.compile.automatic.measure", wraps=measure) as counted,
        crosschip.compile(path, shapes=json.loads(shapes), cache=cache) as compiled,
    ):
        choice = compiled.placement.choice
        order = [] if choice is None else choice.order
        print(json.dumps({"order": order, "measured": counted.call_count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
