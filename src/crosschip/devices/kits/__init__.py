"""Kits for device drivers: ONNX models, drivers in C, toolchains, worker processes, checks."""
