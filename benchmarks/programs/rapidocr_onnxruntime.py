"""rapidocr-onnxruntime reads a drawn page."""

from benchmarks.pages import PAGES
from benchmarks.programs import Run


def load() -> Run:
    from rapidocr_onnxruntime import RapidOCR

    reader, page = RapidOCR(), PAGES["invoice"].draw()
    return lambda: [{"text": text, "box": box} for box, text, _ in reader(page)[0]]
