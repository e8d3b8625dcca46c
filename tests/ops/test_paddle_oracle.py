"""Operators that Paddle defines, compared with Paddle's recorded results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.paddle_oracle import Case, cases_of

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D, AdaptiveMaxPool2D
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.detection import PriorBox, YoloBox
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.pooling import (
    AveragePool2D,
    MaxPool2D,
)
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.sampling import GridSample, RoiAlign
from crosschip.ops.standard.suppression import NonMaxSuppression, PolygonNonMaxSuppression

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


def compare(
    check: Checker,
    operator: type[Operator],
    case: Case,
    inputs: dict[str, Array],
    **settings: Any,
) -> None:
    """Compare an operator with the outputs of a recorded case."""
    check(
        lambda b, *operands: b.add_all(
            operator, **dict(zip(inputs, operands, strict=True)), **settings
        ),
        lambda *_: case.outputs,
        *inputs.values(),
    )


@pytest.mark.parametrize("case", cases_of("yolo_box"), ids=lambda case: str(case.settings))
def test_yolo_box(check: Checker, case: Case) -> None:
    compare(check, YoloBox, case, case.inputs, **case.settings)


@pytest.mark.parametrize("case", cases_of("prior_box"), ids=lambda case: str(case.settings))
def test_prior_box(check: Checker, case: Case) -> None:
    compare(check, PriorBox, case, case.inputs, **case.settings)


@pytest.mark.parametrize("case", cases_of("roi_align"), ids=lambda case: str(case.settings))
def test_roi_align(check: Checker, case: Case) -> None:
    counts = case.inputs["counts"]
    inputs = {
        "input": case.inputs["input"],
        "rois": case.inputs["rois"],
        "batch_indices": np.repeat(np.arange(len(counts), dtype=np.int32), counts),
    }
    compare(check, RoiAlign, case, inputs, **case.settings)


@pytest.mark.parametrize("case", cases_of("deformable_conv"), ids=lambda case: str(case.settings))
def test_deformable_convolution(check: Checker, case: Case) -> None:
    height, width = case.settings["pads"]
    settings = {**case.settings, "pads": (height, height, width, width)}
    compare(check, DeformableConv2D, case, case.inputs, **settings)


@pytest.mark.parametrize("case", cases_of("grid_sample"), ids=lambda case: str(case.settings))
def test_grid_sample(check: Checker, case: Case) -> None:
    borders = {
        "zeros": PadMode.CONSTANT, "border": PadMode.EDGE, "reflection": PadMode.REFLECT,
    }  # fmt: skip
    compare(
        check,
        GridSample,
        case,
        case.inputs,
        align_corners=case.settings["align_corners"],
        mode=Kernel[case.settings["mode"].upper()],
        pad_mode=borders[case.settings["padding_mode"]],
    )


@pytest.mark.parametrize("case", cases_of("multiclass_nms3"), ids=lambda case: str(case.settings))
def test_non_max_suppression(check: Checker, case: Case) -> None:
    compare_selection(check, NonMaxSuppression, case, **case.settings)


@pytest.mark.parametrize("case", cases_of("polygon_nms"), ids=lambda case: str(case.settings))
def test_polygon_non_max_suppression(check: Checker, case: Case) -> None:
    """Paddle ignores whether polygons are normalized."""
    settings = {name: case.settings[name] for name in case.settings if name != "normalized"}
    compare_selection(check, PolygonNonMaxSuppression, case, **settings)


def compare_selection(
    check: Checker, operator: type[Operator], case: Case, **settings: Any
) -> None:
    """Sizes depend on the boxes, so there are no inferred shapes to compare."""
    b = Builder()
    operands: dict[str, Any] = {
        name: b.input(name, TensorType(ElementType.of(array.dtype), array.shape))
        for name, array in case.inputs.items()
    }
    outputs = b.add_all(operator, return_index=True, **operands, **settings)
    for index, operand in enumerate(outputs):
        b.output(str(index), operand)
    program = ReferenceDevice().compile(b.build(), Options())
    for actual, expected in zip(program.run([*case.inputs.values()]), case.outputs, strict=True):
        check.assert_alike(actual, expected, 1e-6)


@pytest.mark.parametrize("case", cases_of("pool2d"), ids=lambda case: str(case.settings))
def test_pooling(check: Checker, case: Case) -> None:
    settings = case.settings
    if "adaptive" in settings:
        operator = {"avg": AdaptiveAveragePool2D, "max": AdaptiveMaxPool2D}[settings["adaptive"]]
        compare(check, operator, case, case.inputs, output_shape=settings["ksize"])
        return
    averages = settings["pooling_type"] == "avg"
    pads = settings.get("paddings", [0, 0])
    given: dict[str, Any] = {
        "kernel_shape": settings["ksize"],
        "strides": settings["strides"],
        "pads": np.repeat(pads, 2) if len(pads) == 2 else pads,
        "ceil_mode": settings.get("ceil_mode", False),
        "auto_pad": {"EXPLICIT": AutoPad.NONE, "SAME": AutoPad.SAME, "VALID": AutoPad.VALID}[
            settings.get("padding_algorithm", "EXPLICIT")
        ],
    }
    if averages:
        given["count_include_pad"] = not settings.get("exclusive", True)
    compare(check, AveragePool2D if averages else MaxPool2D, case, case.inputs, **given)


@pytest.mark.parametrize("case", cases_of("interp_v2"), ids=lambda case: str(case.settings))
def test_resizing(check: Checker, case: Case) -> None:
    operators = {"nearest": ResizeNearest, "bilinear": ResizeLinear, "bicubic": ResizeCubic}
    settings = dict(case.settings)
    operator = operators[settings.pop("mode")]
    renamed = {"size": "shape", "scale_factor": "scales"}
    given = {renamed.get(name, name): value for name, value in settings.items()}
    compare(check, operator, case, case.inputs, **given)
