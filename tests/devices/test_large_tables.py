"""Tables with more rows than float32 holds integers, in which OpenVINO compares."""

from __future__ import annotations

import numpy as np
import pytest

import crosschip
from crosschip.ir import Builder, DeviceError, Dim, ElementType, TensorType, symbol
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.indexing import Gather

ROWS = 2**24 + 8


@pytest.mark.parametrize("rows", [ROWS, symbol("rows")], ids=["known", "open"])
def test_openvino_checks_computed_indices_exactly(rows: Dim) -> None:
    b = Builder()
    table = b.input("table", TensorType(ElementType.UINT8, (rows,)))
    index = b.input("index", TensorType(ElementType.INT32, (2,)))
    b.output("y", b.add(Gather, table, b.add(Add, index, b.constant(np.array([1], np.int32)))))
    given = np.arange(ROWS, dtype=np.uint32).astype(np.uint8)
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        for first in (ROWS - 2, -ROWS - 1):
            places = np.array([first, 2**24], np.int32)
            made = compiled.run({"table": given, "index": places})["y"]
            np.testing.assert_array_equal(made, given[places + 1])
        for first in (ROWS - 1, -ROWS - 2):
            with pytest.raises(DeviceError, match=r"GATHER .*indices: one is out of range"):
                compiled.run({"table": given, "index": np.array([first, 0], np.int32)})
