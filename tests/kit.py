"""Cases of the conformance kit for one run of the tests, which has no time for all of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable

from crosschip.conformance.cases import Case

WHOLE = "CROSSCHIP_KIT"
"""The variable of the environment that has devices run all their cases, where it is `whole`."""


def share(cases: Iterable[Case]) -> list[Case]:
    """A sixth of some cases, the same in every run; all of them where that is asked for."""
    whole = os.environ.get(WHOLE) == "whole"
    return [case for case in cases if whole or zlib.crc32(case.id.encode()) % 6 == 0]
