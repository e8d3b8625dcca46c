"""Import crosschip: how long it takes and what else it imports."""

import json
import sys
import time


def main(names: str = "") -> None:
    """Print the seconds and the names of all packages imported by then.

    Args:
        names: `all` to use every name that crosschip offers, each of which is imported when it is
            first used.
    """
    start = time.perf_counter()
    import crosschip

    if names == "all":
        for name in crosschip.__all__:
            getattr(crosschip, name)
    seconds = time.perf_counter() - start
    packages = sorted({name.partition(".")[0] for name in sys.modules})
    print(json.dumps({"seconds": seconds, "packages": packages}))


if __name__ == "__main__":
    main(*sys.argv[1:])
