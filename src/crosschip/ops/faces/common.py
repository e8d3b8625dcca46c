"""Notes on translation that operators of several families share."""

from __future__ import annotations

PROMOTED = "operands of two types become the wider of them"
