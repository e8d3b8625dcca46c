"""What IREE refuses or computes wrong, operation by operation."""

from __future__ import annotations

from crosschip.devices.iree.targets import Target
from crosschip.hal import Refusal
from crosschip.ir import Operation


def limit(operation: Operation, target: Target) -> Refusal | None:
    """Return why IREE does not run an operation; `None` if it does."""
    return None
