"""Run a program of `benchmarks.programs` for a parent."""

from __future__ import annotations

import site
import sys
import threading
import time
from typing import Any

from benchmarks.programs._process import ANSWER, CHANGED, PACKAGES, TIME

_TRIAL_SECONDS = 60.0
"""The maximum number of seconds to wait until other devices have been tried."""

_LAST_DIGITS = 2.0**-22
"""Two steps of float32: the differences of engines that compute in another order."""


def main(name: str, devices: str) -> None:
    """Write the answer, then the milliseconds of a run for each line that comes in.

    Args:
        name: of the program.
        devices: names of devices, with commas, or `auto`; without any, ONNX Runtime itself;
            `changed` for ONNX Runtime with inputs that differ in their last digits.
    """
    if devices == CHANGED:
        _change_inputs()
    elif devices:
        import crosschip.apis.onnxruntime as face

        face.install(devices=devices if devices == "auto" else devices.split(","))
    from benchmarks.programs import load
    from benchmarks.programs._answers import encode, plain

    site.addsitedir(str(PACKAGES))
    run = load(name)
    answer = encode(plain(run()))
    for thread in threading.enumerate():
        if thread.name == "crosschip trials":
            thread.join(_TRIAL_SECONDS)
    print(f"\n{ANSWER}{answer}", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        print(f"\n{TIME}{(time.perf_counter() - start) * 1e3}", flush=True)


def _change_inputs() -> None:
    """Have ONNX Runtime's sessions multiply the elements of float32 inputs by numbers near 1."""
    import numpy as np
    import onnxruntime

    run, random = onnxruntime.InferenceSession.run, np.random.default_rng(0)

    def changed(array: Any) -> Any:
        if getattr(array, "dtype", None) != np.float32:
            return array
        factors = 1 + _LAST_DIGITS * random.uniform(-1, 1, array.shape)
        return (array * factors).astype(np.float32)

    def run_changed(self: Any, names: Any, inputs: Any, options: Any = None) -> Any:
        return run(self, names, {name: changed(array) for name, array in inputs.items()}, options)

    onnxruntime.InferenceSession.run = run_changed


if __name__ == "__main__":
    main(*sys.argv[1:])
