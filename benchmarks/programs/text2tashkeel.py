"""text2tashkeel adds the vowels to Arabic text, with networks in eight bits."""

from benchmarks.programs import Run


def load() -> Run:
    from text2tashkeel import Diacritizer

    writer = Diacritizer()
    return lambda: writer.diacritize("ذهب الولد إلى المدرسة في الصباح الباكر")
