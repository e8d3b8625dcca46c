"""Models of standard operators as ONNX, for engines and compilers that read it.

The converters keep to what ONNX Runtime computes as the operators' definitions say, and their
limits are its. It is the measure by which vendors' tools that read ONNX are made.
"""
