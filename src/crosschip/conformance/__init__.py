"""The conformance kit: cases made from the operators' definitions, run on a vendor's device.

`cases` makes them, `judge` runs one and says how it went, `pool` runs many in processes that may
crash or hang, and `report` writes down what came of it.
"""

from crosschip.conformance.cases import Case, all_cases, case_of, random_cases
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.pool import run_cases
from crosschip.conformance.report import Report

__all__ = [
    "Case",
    "Report",
    "Result",
    "Verdict",
    "all_cases",
    "case_of",
    "random_cases",
    "run_cases",
]
