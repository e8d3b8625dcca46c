"""Search for the operators that a device computes wrong, by running parts of a model on it.

Example:
    from crosschip.bisect import find_failing_operators

    report = find_failing_operators("model.onnx", "mychip")
    for operator in report.failing_operators:
        print(operator)
    report.write("found")
"""

from crosschip.bisect.failing_operators import find_failing_operators
from crosschip.bisect.report import FailingOperator, Report

__all__ = ["FailingOperator", "Report", "find_failing_operators"]
