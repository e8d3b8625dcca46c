"""Comparison of crosschip with engines that run the same file directly, for `crosschip bench`.

- `timing`: times competitors in turns.
- `peers`: opens a model file with an engine directly, without crosschip.
- `onnxruntime`, `openvino`: the engines.
- `agreement`: compares their outputs.
- `results`: the times and errors, which print as tables and show in notebooks; `benchmark` times
  compiled models in Python.
"""

from crosschip.bench.results import Benchmark, benchmark

__all__ = ["Benchmark", "benchmark"]
