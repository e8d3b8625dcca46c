"""Decompositions of ONNX operators that are too long for the operators' files."""
