"""The conformance kit: cases derived from the operators' definitions, run on a vendor's device.

`cases` generates them, `judge` runs one and compares it with the reference, `pool` runs many in
worker processes that may crash or hang, and `report` collects the results.

Names are imported on first use: pytest imports this package in every environment in which
crosschip is installed, because it holds the plug-in.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.conformance.cases import Case as Case
    from crosschip.conformance.cases import all_cases as all_cases
    from crosschip.conformance.cases import case_of as case_of
    from crosschip.conformance.cases import random_cases as random_cases
    from crosschip.conformance.judge import Result as Result
    from crosschip.conformance.judge import Verdict as Verdict
    from crosschip.conformance.pool import run_cases as run_cases
    from crosschip.conformance.report import Report as Report

_HOMES = {
    "Case": "crosschip.conformance.cases",
    "Report": "crosschip.conformance.report",
    "Result": "crosschip.conformance.judge",
    "Verdict": "crosschip.conformance.judge",
    "all_cases": "crosschip.conformance.cases",
    "case_of": "crosschip.conformance.cases",
    "random_cases": "crosschip.conformance.cases",
    "run_cases": "crosschip.conformance.pool",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
