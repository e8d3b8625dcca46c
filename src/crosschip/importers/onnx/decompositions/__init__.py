"""The longer ways of expressing ONNX operators by standard ones, a file each."""
