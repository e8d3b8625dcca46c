"""Comparing crosschip with engines that run the same file alone; behind `crosschip bench`.

- `timing`: times competitors in turn, `Timing` sums up what was measured.
- `peers`: opens a model file with an engine directly, without crosschip.
- `onnxruntime`, `openvino`: the engines.
- `agreement`: tells whether all computed the same.
"""
