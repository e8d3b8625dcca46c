"""How the opsets of NNAdapter, NNRt, its driver interface and ONNX name the standard operators.

The mappings of a family of operators are in `crosschip.mapping.standard.FAMILY`; an interface reads
them by `crosschip.mapping.opsets.opset_mapping`, and imports and exports operations by
`crosschip.mapping.translation`.
"""
