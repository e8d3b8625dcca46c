"""Fourier transforms and complex numbers, against LiteRT and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import crosschip
from crosschip.flatbuffer import write
from crosschip.flatbuffer.schemas import tflite
from crosschip.flatbuffer.schemas.tflite.enumerations import BuiltinOperator, TensorType
from crosschip.flatbuffer.schemas.tflite.options import (
    AddOptions,
    CastOptions,
    Rfft2dOptions,
)
from crosschip.ir import Array, UnsupportedError

_OPTIONS = {"RFFT2D": Rfft2dOptions(), "CAST": CastOptions(), "ADD": AddOptions()}


def _file(shape: tuple[int, ...], lengths: tuple[int, int], reader: str) -> bytes:
    """A transform, and an operator that makes real numbers of it."""
    result = [*shape[:-2], lengths[0], lengths[1] // 2 + 1]
    complex_ = TensorType.COMPLEX64
    tensors = [
        tflite.Tensor(shape=shape, name="image"),
        tflite.Tensor(shape=[2], type=TensorType.INT32, buffer=1, name="lengths"),
        tflite.Tensor(shape=result, type=complex_, name="spectrum"),
        tflite.Tensor(shape=result, type=complex_ if reader == "ADD" else 0, name="result"),
    ]
    names = ["RFFT2D", reader]
    inputs = [[0, 1], [2, 2] if reader == "ADD" else [2]]
    graph = tflite.SubGraph(
        tensors=tensors,
        inputs=[0],
        outputs=[3],
        operators=[
            tflite.Operator(
                opcode_index=index,
                inputs=inputs[index],
                outputs=[2 + index],
                builtin_options=_OPTIONS.get(name),
            )
            for index, name in enumerate(names)
        ],
    )
    codes = [
        tflite.OperatorCode(
            builtin_code=BuiltinOperator[name],
            deprecated_builtin_code=min(BuiltinOperator[name], 127),
            version=1,
        )
        for name in names
    ]
    data = np.array(lengths, np.int32).view(np.uint8)
    buffers = [tflite.Buffer(), tflite.Buffer(data=data)]
    model = tflite.Model(version=3, operator_codes=codes, subgraphs=[graph], buffers=buffers)
    return write(model, tflite.IDENTIFIER)


def _of_litert(content: bytes, image: Array) -> Array:
    interpreter = Interpreter(
        model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    result: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return result


@pytest.mark.parametrize("reader", ["COMPLEX_ABS", "REAL", "IMAG"])
@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((2, 8, 16), (8, 16)), ((3, 1, 5), (1, 8)), ((1, 2, 6, 9), (4, 8)), ((4, 4), (2, 2))],
)
def test_transforms_are_those_of_litert(
    shape: tuple[int, ...], lengths: tuple[int, int], reader: str
) -> None:
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    content = _file(shape, lengths, reader)
    model = crosschip.load(content)
    (result,) = crosschip.compile(model, ["reference"], cache=False).run({"image": image}).values()
    spectrum = np.fft.rfft2(image, lengths)
    parts = {"COMPLEX_ABS": abs(spectrum), "REAL": spectrum.real, "IMAG": spectrum.imag}
    np.testing.assert_allclose(result, parts[reader], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(_of_litert(content, image), result, rtol=1e-4, atol=1e-4)


def test_other_operators_refuse_complex_numbers() -> None:
    with pytest.raises(UnsupportedError, match=r"ADD.*of complex numbers, it has no importer"):
        crosschip.load(_file((4, 4), (4, 4), "ADD"))
