"""Capabilities that all OpenVINO devices share."""

from __future__ import annotations

from crosschip.hal.capabilities import SCHEDULING, Capabilities
from crosschip.ir import ElementType

CAPABILITIES = Capabilities(
    holds_weights=True,
    loads_views=True,
    open_ranks=False,
    narrowed={ElementType.INT64: ElementType.INT32},
    settable_at_load=SCHEDULING,
    tied_to=(),
)
