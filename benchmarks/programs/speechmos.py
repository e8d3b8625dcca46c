"""speechmos rates the quality of speech."""

from benchmarks.programs import Run
from benchmarks.programs._samples import RATE, speech


def load() -> Run:
    from speechmos import dnsmos

    return lambda: dnsmos.run(speech(), RATE)
