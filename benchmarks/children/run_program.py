"""Run a program of `benchmarks.programs` for a parent."""

from __future__ import annotations

import site
import sys
import time


def main(name: str, devices: str) -> None:
    """Write the answer, then the milliseconds of a run for each line that comes in.

    Args:
        name: of the program.
        devices: names of devices, with commas, or `auto`; without any, ONNX Runtime itself.
    """
    if devices:
        import crosschip.apis.onnxruntime as face

        face.install(devices=devices if devices == "auto" else devices.split(","))
    from benchmarks.programs import load
    from benchmarks.programs._answers import encode, plain
    from benchmarks.programs._process import ANSWER, PACKAGES, TIME

    site.addsitedir(str(PACKAGES))
    run = load(name)
    print(f"\n{ANSWER}{encode(plain(run()))}", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        print(f"\n{TIME}{(time.perf_counter() - start) * 1e3}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
