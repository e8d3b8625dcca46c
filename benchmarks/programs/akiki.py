"""akiki finds speech in a sound that comes in pieces."""

from benchmarks.programs import Run
from benchmarks.programs._samples import speech


def load() -> Run:
    import akiki

    detector, sound = akiki.VAD(engine="onnx"), speech()

    def run() -> object:
        detector.reset()
        pieces = [sound[start : start + 4000] for start in range(0, len(sound), 4000)]
        frames = [frame for piece in pieces for frame in detector.push(piece)]
        return {
            "speech": [frame.speech for frame in frames],
            "probability": [frame.probability for frame in frames],
        }

    return run
