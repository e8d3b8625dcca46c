"""Import crosschip and a model file: how long it takes."""

import json
import sys
import time


def main(path: str) -> None:
    """Print the seconds and the number of operations."""
    start = time.perf_counter()
    import crosschip

    model = crosschip.load(path)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "operations": len(model.operations)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
