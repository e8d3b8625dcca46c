"""Names of attention with a key-value cache in other systems."""

from __future__ import annotations

from crosschip.mapping.opsets import map_operator
from crosschip.ops.standard.cached_attention import GroupQueryAttention

map_operator(GroupQueryAttention, onnx=["com.microsoft.GroupQueryAttention"])
