"""Names of operators of transformers in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import faces
from crosschip.ops.standard.attention import Attention, RotaryEmbedding

faces(
    Attention,
    onnx=["Attention", "com.microsoft.Attention", "com.microsoft.MultiHeadAttention"],
)

faces(
    RotaryEmbedding,
    onnx=["RotaryEmbedding", "com.microsoft.RotaryEmbedding"],
)
