"""faster-whisper finds speech in a sound, which it does before it transcribes."""

from benchmarks.programs import Run
from benchmarks.programs._samples import speech


def load() -> Run:
    from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

    model, sound = get_vad_model(), speech()
    options = VadOptions(min_silence_duration_ms=100)
    padded = sound[: len(sound) // 512 * 512]
    return lambda: {"speech": get_speech_timestamps(sound, options), "frames": model(padded)}
