"""rapid-layout finds the parts of a page."""

from benchmarks.pages import PAGES
from benchmarks.programs import Run


def load() -> Run:
    from rapid_layout import RapidLayout

    engine, page = RapidLayout(conf_thresh=0.2), PAGES["letter"].draw()

    def run() -> object:
        result = engine(page)
        return {"classes": result.class_names, "boxes": result.boxes, "scores": result.scores}

    return run
