"""MobileNetV1 on the fake NPU: quantized by ONNX Runtime's tool, and compared with other devices.

    python mobilenet.py mobilenet_v1.onnx

The network of the project's tests has random weights, with which one class wins whatever is seen.
So its last layer is fitted first, by least squares, to tell ten kinds of stripes apart; then the
whole is quantized to bytes with one scale for each tensor.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

import crosschip
from crosschip.hal.operation_cost import multiply_adds

Array = NDArray[Any]

KINDS = 10
_LEARNT, _CALIBRATED = 20, 2


def picture(kind: int, number: int, size: int) -> Array:
    """One of the pictures of a kind, [1, 3, size, size]: stripes of a colour, under noise."""
    random = np.random.default_rng((kind, number))
    colour = np.cos(2 * np.pi * kind / KINDS + np.array([0, 2, 4]) * np.pi / 3)
    y, x = np.mgrid[:size, :size] / size
    across = (x, y)[kind // 5] * (3, 5, 8, 13, 20)[kind % 5] + random.uniform(0, 0.05)
    stripes = random.uniform(0.95, 1.05) * (1 + np.sin(2 * np.pi * across)) / 2
    noise = random.normal(scale=0.02, size=(3, size, size))
    picture: Array = colour.reshape(3, 1, 1) * stripes + noise
    return picture[np.newaxis].astype(np.float32)


def pictures(size: int, first: int, count: int) -> Iterator[tuple[int, Array]]:
    """Kinds and pictures, so many of each kind."""
    for number in range(first, first + count):
        for kind in range(KINDS):
            yield kind, picture(kind, number, size)


def fitted(path: Path, size: int) -> ModelProto:
    """MobileNetV1 for pictures of a size, with a last layer that tells their kinds apart."""
    model = onnx.load(path)
    graph = model.graph
    for axis, known in zip(
        graph.input[0].type.tensor_type.shape.dim, (1, 3, size, size), strict=True
    ):
        axis.dim_value = known
    product = next(node for node in graph.node if node.op_type == "MatMul")
    total = next(node for node in graph.node if product.output[0] in node.input)
    features, labels = _features(model, product.input[0], size)
    mean = features.mean(axis=0)
    wanted = np.eye(KINDS)[labels] * 2 - 1
    gram = (features - mean) @ (features - mean).T
    ridge = gram + 1e-2 * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = (features - mean).T @ np.linalg.solve(ridge, wanted)
    bias = wanted.mean(axis=0) - mean @ weights
    (bias_name,) = (name for name in total.input if name != product.output[0])
    fresh = {product.input[1]: weights, bias_name: bias}
    for node in [node for node in graph.node if node.output[0] in fresh]:
        graph.node.remove(node)
    for name, values in fresh.items():
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), name))
    del graph.value_info[:]
    graph.output[0].type.tensor_type.shape.dim[1].dim_value = KINDS
    return model


def _features(model: ModelProto, name: str, size: int) -> tuple[Array, list[int]]:
    """What the network has seen before its last layer, in pictures to learn from."""
    probe = ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.ValueInfoProto(name=name))
    session = onnxruntime.InferenceSession(
        probe.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    given = probe.graph.input[0].name
    seen = [
        (session.run(None, {given: image})[0], kind) for kind, image in pictures(size, 0, _LEARNT)
    ]
    return np.concatenate([row for row, _ in seen]).astype(np.float64), [kind for _, kind in seen]


class _Calibration(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """Pictures to calibrate with."""

    def __init__(self, name: str, size: int) -> None:
        self._pictures = iter([{name: image} for _, image in pictures(size, 0, _CALIBRATED)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._pictures, None)


def quantized(path: Path, written: Path, size: int, type_: str, form: str = "QDQ") -> None:
    """Write a network in bytes, each tensor with one scale.

    Args:
        path: MobileNetV1 in float32.
        written: the file to write.
        size: height and width of the pictures.
        type_: `uint8` or `int8`, that of weights and of all else.
        form: `QDQ`, conversions around each operator, or `QOperator`, operators on bytes.
    """
    kind = QuantType.QUInt8 if type_ == "uint8" else QuantType.QInt8
    with tempfile.TemporaryDirectory() as folder:
        plain, prepared = Path(folder, "plain.onnx"), Path(folder, "prepared.onnx")
        model = fitted(path, size)
        onnx.save(model, plain)
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            written,
            _Calibration(model.graph.input[0].name, size),
            quant_format=QuantFormat[form],
            per_channel=False,
            activation_type=kind,
            weight_type=kind,
        )


def share(compiled: crosschip.CompiledModel, device: str) -> float:
    """The part of all multiplications, each with an addition, that a device does."""
    work = Counter[str]()
    for segment in compiled.placement.segments:
        work[segment.device] += sum(map(multiply_adds, segment.operations))
    return work[device] / work.total()


def main() -> None:
    """Quantize, compile, and compare on as many pictures as are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("network", type=Path, help="MobileNetV1 as an ONNX file")
    parser.add_argument("--size", type=int, default=224, help="height and width of the pictures")
    parser.add_argument("--pictures", type=int, default=50, help="how many to compare")
    parser.add_argument("--type", choices=("uint8", "int8"), default="uint8")
    parser.add_argument("--form", choices=("QDQ", "QOperator"), default="QDQ")
    parser.add_argument("--rest", default="reference", help="the device for the rest")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "quantized.onnx")
        quantized(asked.network, path, asked.size, asked.type, asked.form)
        model = crosschip.load(path)
        start = time.perf_counter()
        npu = crosschip.compile(model, ["fake_npu", asked.rest], cache=False)
        seconds = time.perf_counter() - start
        other = crosschip.compile(model, [asked.rest], cache=False)
        part = share(npu, "fake_npu")
        print(f"compiled in {seconds:.1f} s; {part:.1%} of the multiply-adds are on the NPU")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        answers, times = [], []
        for kind, image in pictures(asked.size, 1000, -(-asked.pictures // KINDS)):
            start = time.perf_counter()
            made = npu(image)
            times.append(time.perf_counter() - start)
            (engine,) = session.run(None, {session.get_inputs()[0].name: image})
            answers.append([int(rows.argmax()) for rows in (made, other(image), engine)] + [kind])
        found = np.array(answers[: asked.pictures])
    print(f"{np.median(times):.2f} s a picture")
    for name, column in ((asked.rest, 1), ("onnxruntime by itself", 2), ("the picture's kind", 3)):
        same = (found[:, 0] == found[:, column]).sum()
        print(f"the class is that of {name}: {same} of {len(found)}")
    print(f"classes seen: {len(set(found[:, 0]))}")


if __name__ == "__main__":
    main()
