"""Examples of sampling of images."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

examples(
    GridSample,
    example(input=random(2, 3, 4, 5), grid=random(2, 3, 6, 2, low=-1.3, high=1.3)),
    *(
        example(
            input=random(1, 2, 4, 5),
            grid=random(1, 3, 4, 2, low=-1.9, high=1.9),
            align_corners=align_corners,
            mode=mode,
            pad_mode=pad_mode,
        )
        for mode in Kernel
        for pad_mode in (PadMode.CONSTANT, PadMode.REFLECT, PadMode.EDGE)
        for align_corners in (False, True)
    ),
    example(
        input=random(
            1,
            2,
            4,
            5,
            dtype=ElementType.INT8,
            low=-128,
            high=128,
            quantization=Quantization((0.05,)),
        ),
        grid=random(1, 3, 4, 2, low=-1, high=1),
        quantization=Quantization((0.04,)),
    ),
)

examples(
    RoiAlign,
    *(
        example(
            input=random(2, 3, 6, 7),
            rois=model_input([[0.5, 1.0, 5.2, 4.4], [-2.0, 3.0, 9.0, 12.0], [2.0, 2.0, 2.4, 2.6]]),
            batch_indices=model_input(np.array([0, 1, 1], np.int32)),
            output_height=3,
            output_width=2,
            **settings,
        )
        for settings in (
            {"sampling_ratio": 2},
            {"sampling_ratio": 2, "aligned": True, "spatial_scale": 0.5},
            {"aligned": True},
            {"spatial_scale": 2.0},
            {"sampling_ratio": 2, "mode": RoiMode.MAX},
        )
    ),
    example(
        input=random(
            1,
            2,
            6,
            7,
            dtype=ElementType.INT8,
            low=-128,
            high=128,
            quantization=Quantization((0.05,)),
        ),
        rois=model_input([[0.5, 1.0, 5.2, 4.4]]),
        batch_indices=model_input(np.array([0], np.int32)),
        output_height=2,
        output_width=2,
        sampling_ratio=2,
        quantization=Quantization((0.04,)),
    ),
)
