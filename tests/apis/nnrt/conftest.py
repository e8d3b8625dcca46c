"""The benchmarks are not installed with crosschip; the tests find them beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
