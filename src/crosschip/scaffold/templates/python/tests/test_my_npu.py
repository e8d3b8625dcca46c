"""A model of which the device runs a part; each operator is tested by the conformance kit."""

import numpy as np

import crosschip
from crosschip.ir import Builder, ElementType, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Sin


def test_the_rest_goes_elsewhere() -> None:
    b = Builder("mixed")
    x = b.input("x", TensorType(ElementType.FLOAT32, (2,)))
    b.output("y", b.add(Sin, b.add(Relu, x)))
    with crosschip.compile(b.build(), ["my_npu", "reference"], cache=False) as compiled:
        assert [d.device for d in compiled.placement.decisions] == ["my_npu", "reference"]
        assert compiled.placement.decisions[1].reasons["my_npu"]
        y = compiled(np.array([-1, 2], np.float32))
    np.testing.assert_allclose(y, np.sin([0, 2]), rtol=1e-6)
