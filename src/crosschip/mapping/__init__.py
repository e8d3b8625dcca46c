"""Mappings between the standard operators and those of NNAdapter, NNRt, its HDI and ONNX.

`crosschip.mapping.standard.FAMILY` has the mappings of a family of operators.
`crosschip.mapping.opsets.opset_mapping` returns them, and `crosschip.mapping.translation` imports
and exports operations with them.
"""
