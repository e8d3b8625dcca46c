"""How ONNX Runtime gathers the pixels of pictures."""

from __future__ import annotations

import numpy as np
import pytest

import crosschip
from crosschip.devices.onnxruntime.lowering import lower
from crosschip.ir import Builder, ElementType, Model, Shape, TensorType, symbol
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Transpose

COLUMNS = np.array([4, 0, -1, 2, 2], np.int32)


def model(
    shape: Shape, element_type: ElementType = ElementType.UINT8, axis: int = 2, rank: int = 1
) -> Model:
    """Return a model that gathers, computes, and reads the result as planes."""
    b = Builder()
    indices = b.constant(COLUMNS.reshape((-1,) + (1,) * (rank - 1)))
    pixels = b.add(Gather, b.input("x", TensorType(element_type, shape)), indices, axis)
    doubled = b.add(Mul, b.add(Cast, pixels, ElementType.FLOAT32), 2.0)
    b.output("y", b.add(Transpose, doubled, (0, 3, 1, 2)) if rank == 1 else doubled)
    return b.build()


OPEN = (symbol("N"), symbol("H"), symbol("W"), 3)


@pytest.mark.parametrize("shape", [(2, 4, 5, 3), OPEN, (2, 4, 5, 4)], ids=["fixed", "open", "rgba"])
def test_columns_are_rows_of_the_transposed_picture(shape: Shape) -> None:
    lowered = lower(model(shape))
    lowered.verify()
    (gather,) = (o for o in lowered.operations if isinstance(o, Gather))
    assert gather.axis == 1
    transposes = [o for o in lowered.operations if isinstance(o, Transpose)]
    assert len(transposes) == 2, "one before, and the one that follows"
    channels = shape[3]
    assert isinstance(channels, int)
    x = np.random.default_rng(0).integers(0, 256, (2, 4, 5, channels), np.uint8)
    with crosschip.compile(model(shape), "onnxruntime", cache=False) as compiled:
        y = compiled.run({"x": x})["y"]
    np.testing.assert_array_equal(y, x[:, :, COLUMNS].transpose(0, 3, 1, 2) * 2.0)


@pytest.mark.parametrize(
    "others",
    [
        model((2, 4, 5, 3), ElementType.FLOAT32),
        model((2, 4, 5, 5)),
        model((2, 5, 4, 3), axis=1),
        model((2, 4, 5, 3), rank=2),
    ],
    ids=["reals", "five channels", "rows", "windows"],
)
def test_others_stay(others: Model) -> None:
    assert lower(others) is others
