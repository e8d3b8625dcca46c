"""Kits to build devices with: ONNX hand-over, drivers in C, toolchains, workers, checks."""
