"""RapidOCR, as it is published, over this interface and over ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from benchmarks.pages import PAGES

_READ = """
import json, sys
from crosschip.apis import paddle_inference
paddle_inference.install("onnxruntime")
import paddle
assert not hasattr(paddle, "__file__"), paddle.__file__
from rapidocr_onnxruntime import RapidOCR as OfOnnxRuntime
from rapidocr_paddle import RapidOCR as OfPaddle
from benchmarks.pages import PAGES
from benchmarks.subjects.rapidocr import read
small = {"det_limit_side_len": 160}  # as they are, pages are large enough
ours, theirs = OfPaddle(**small), OfOnnxRuntime(**small)
pages = {name: page.draw() for name, page in PAGES.items()}
print(json.dumps({name: [read(ours, page), read(theirs, page)] for name, page in pages.items()}))
"""


@pytest.mark.slow
def test_both_read_the_same_text_from_every_page() -> None:
    done = subprocess.run([sys.executable, "-c", _READ], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert done.stderr.count("delete_pass is accepted, but has no meaning here") == 1
    found = json.loads(done.stdout)
    assert len(found) == len(PAGES) > 5
    for name, page in PAGES.items():
        ours, theirs = found[name]
        assert ours == theirs
        drawn, read = ({line.replace(" ", "") for line in lines} for lines in (page.lines, ours))
        assert len(drawn & read) >= 0.6 * len(drawn)
