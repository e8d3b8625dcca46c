"""rapidocr, the successor of rapidocr-onnxruntime, reads a drawn page with PP-OCRv6."""

from benchmarks.pages import PAGES
from benchmarks.programs import Run


def load() -> Run:
    from rapidocr import RapidOCR

    reader, page = RapidOCR(params={"Global.log_level": "error"}), PAGES["letter"].draw()

    def run() -> object:
        result = reader(page)
        return {"text": list(result.txts), "boxes": result.boxes}

    return run
