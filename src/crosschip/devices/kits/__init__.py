"""Code that devices share: models as ONNX, devices written in C, toolchains, worker processes."""
