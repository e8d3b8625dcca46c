"""OpenVINO reads and writes large tensors in place, and copies small ones, which is faster."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import float32, model_of

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.program import OpenVinoProgram
from crosschip.hal import Options
from crosschip.ops.standard.activation import Relu


@pytest.mark.parametrize(("side", "handed"), [(64, 0), (104, 0), (110, 1), (224, 1)])
def test_images_up_to_a_thumbnails_size_are_copied(side: int, handed: int) -> None:
    shape = (1, 3, side, side)
    model = model_of(lambda b, x: b.add(Relu, x), float32(*shape))
    program = OpenVinoDevice().compile(model, Options())
    assert isinstance(program, OpenVinoProgram)
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for _ in range(2):
        (made,) = program.run([image])
        np.testing.assert_array_equal(made, np.maximum(image, 0))
    (request,) = program._idle
    assert len(request._open_in) == len(request._open_out) == handed
