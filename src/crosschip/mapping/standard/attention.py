"""Names of operators of transformers in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import map_operator
from crosschip.ops.standard.attention import Attention, RotaryEmbedding

map_operator(
    Attention, onnx=["Attention", "com.microsoft.Attention", "com.microsoft.MultiHeadAttention"]
)

map_operator(RotaryEmbedding, onnx=["RotaryEmbedding", "com.microsoft.RotaryEmbedding"])
