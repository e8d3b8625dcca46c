"""Parts of models, which compilers are asked about."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.toolchain.asking import part_of
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Builder, ElementType, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add


def test_a_part_is_in_the_order_of_its_model_whatever_order_it_is_named_in() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2,)))
    first = b.add(Relu, x)
    second = b.add(Add, first, np.array([1, 2], np.float32))
    b.output("y", b.add(Add, second, first))
    model = b.build()
    one, two, three = model.operations
    part = part_of(model, [three, one, two])
    assert list(part.operations) == [one, two, three]
    (made,) = ReferenceDevice().compile(part, Options()).run([np.array([-1, 3], np.float32)])
    assert made.tolist() == [1, 8]
