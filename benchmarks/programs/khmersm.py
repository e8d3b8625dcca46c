"""khmersm splits Khmer text into words; its weights are in a file beside the model."""

from benchmarks.programs import Run


def load() -> Run:
    from khmersm import Segmenter

    segmenter = Segmenter()
    return lambda: segmenter.segment("ខ្ញុំស្រឡាញ់ប្រទេសកម្ពុជា និងភាសាខ្មែរ")
