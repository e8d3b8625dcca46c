"""Comparison of engines that read a model's file with crosschip on devices and mixtures of them.

- `comparison`: the public function `compare`.
- `competitors`: opens the engines, and compiles for the devices and mixtures.
- `oracle`: the outputs that count as exact, and the errors against them.
- `results`: the times and errors, which print as tables and show in notebooks.
- `picture`: draws them as SVG.
"""

from crosschip.comparison.comparison import compare
from crosschip.comparison.results import Comparison, Measurement

__all__ = ["Comparison", "Measurement", "compare"]
