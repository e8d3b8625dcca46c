"""Models of standard operators as ONNX, for engines and compilers that read it.

The converters and their limits follow ONNX Runtime: they produce what ONNX Runtime computes by the
operators' definitions. Vendors test their ONNX tools against it.
"""
