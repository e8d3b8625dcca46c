"""Names of attention to what is kept from run to run, in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import faces
from crosschip.ops.standard.cached_attention import GroupQueryAttention

faces(GroupQueryAttention, onnx=["com.microsoft.GroupQueryAttention"])
