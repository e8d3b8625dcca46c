"""Finding the operators that a device computes wrong, by running parts of a model on it.

from crosschip.bisect import find_culprits

report = find_culprits("model.onnx", "mychip")
for culprit in report.culprits:
    print(culprit)
report.write("found")
"""

from crosschip.bisect.finding import find_culprits
from crosschip.bisect.report import Culprit, Report

__all__ = ["Culprit", "Report", "find_culprits"]
