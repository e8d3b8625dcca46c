"""The corpus is not installed with crosschip; the tests find it beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
