"""silero-vad finds speech in a sound."""

from benchmarks.programs import Run
from benchmarks.programs._samples import speech


def load() -> Run:
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    model, sound = load_silero_vad(onnx=True), torch.from_numpy(speech())

    def run() -> object:
        probabilities = model.audio_forward(sound, 16000)
        return {"speech": get_speech_timestamps(sound, model), "frames": probabilities.numpy()}

    return run
