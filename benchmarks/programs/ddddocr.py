"""ddddocr reads a word in a picture."""

from io import BytesIO

from PIL import Image

from benchmarks.pages import Page
from benchmarks.programs import Run


def load() -> Run:
    from ddddocr import DdddOcr

    reader, file = DdddOcr(show_ad=False), BytesIO()
    Image.fromarray(Page(["Kx7Pq"], width=140, letter=36).draw()).save(file, "png")
    return lambda: reader.classification(file.getvalue())
