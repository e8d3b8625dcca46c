"""nudenet finds parts of the body in a photograph."""

from benchmarks.programs import Run
from benchmarks.programs._samples import portrait


def load() -> Run:
    from nudenet import NudeDetector

    detector, picture = NudeDetector(), portrait()[:, :, ::-1].copy()
    return lambda: detector.detect(picture)
