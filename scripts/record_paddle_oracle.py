"""Computes with Paddle what only Paddle defines, for the tests of our own definitions.

Run it with a Python that has paddlepaddle; nothing else is asked for:

    python scripts/record_paddle_oracle.py tests/ops/recorded

Each file that it writes, `paddle_<operator>.npz`, holds the version that computed it under
`oracle`, and for each case its settings in JSON under `<case>/settings`, its inputs under
`<case>/input/<name>` and Paddle's results under `<case>/output/<index>`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import _C_ops

Array = NDArray[Any]
Case = tuple[dict[str, Array], dict[str, Any]]

random = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return random.normal(size=shape).astype(np.float32)


def uniform(low: float, high: float, *shape: int) -> Array:
    return random.uniform(low, high, shape).astype(np.float32)


def boxes(*shape: int) -> Array:
    """Boxes many of which overlap."""
    corners, extents = uniform(0, 30, *shape, 2), uniform(4, 25, *shape, 2)
    return np.concatenate([corners, corners + extents], axis=-1)


def yolo_box_cases() -> Iterator[Case]:
    sizes = np.array([[64, 96], [50, 70]], np.int32)
    common = {"anchors": [10, 13, 16, 30, 33, 23], "class_num": 3, "downsample_ratio": 16}
    for settings in (
        {"conf_thresh": 0.5},
        {"conf_thresh": 0.3, "clip_bbox": False},
        {"conf_thresh": 0.6, "scale_x_y": 1.2},
    ):
        yield {"input": normal(2, 24, 3, 5), "imgsize": sizes}, {**common, **settings}
    aware = {"iou_aware": True, "iou_aware_factor": 0.4, "conf_thresh": 0.5, "scale_x_y": 1.05}
    yield {"input": normal(2, 27, 4, 3), "imgsize": sizes}, {**common, **aware}


def yolo_box(
    input: Any,
    imgsize: Any,
    anchors: list[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> Sequence[Any]:
    boxes_and_scores: Sequence[Any] = paddle.vision.ops.yolo_box(
        input, imgsize, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox,
        scale_x_y=scale_x_y, iou_aware=iou_aware, iou_aware_factor=iou_aware_factor,
    )  # fmt: skip
    return boxes_and_scores


def prior_box_cases() -> Iterator[Case]:
    inputs = {
        "input": np.zeros((1, 2, 4, 3), np.float32),
        "image": np.zeros((1, 3, 40, 33), np.float32),
    }
    for settings in (
        {"min_sizes": [8.0]},
        {"min_sizes": [8.0, 14.0], "max_sizes": [12.0, 20.0], "aspect_ratios": [2.0, 3.0]},
        {"min_sizes": [9.0], "aspect_ratios": [1.0, 2.0, 0.5], "flip": True, "clip": True},
        {
            "min_sizes": [8.0, 14.0],
            "max_sizes": [12.0, 20.0],
            "aspect_ratios": [2.0],
            "flip": True,
            "min_max_aspect_ratios_order": True,
            "variances": [0.1, 0.3, 0.2, 0.4],
            "step_w": 12.0,
            "step_h": 9.0,
            "offset": 0.25,
        },
    ):
        yield inputs, settings


def prior_box(
    input: Any,
    image: Any,
    min_sizes: list[float],
    max_sizes: list[float] | None = None,
    aspect_ratios: Sequence[float] = (1.0,),
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    step_w: float = 0.0,
    step_h: float = 0.0,
    **settings: Any,
) -> Sequence[Any]:
    boxes_and_variances: Sequence[Any] = paddle.vision.ops.prior_box(
        input, image, min_sizes, max_sizes, list(aspect_ratios), list(variances),
        steps=[step_w, step_h], **settings,
    )  # fmt: skip
    return boxes_and_variances


def roi_align_cases() -> Iterator[Case]:
    rois = np.array(
        [[1.2, 0.4, 6.3, 5.1], [-3.0, 2.0, 12.0, 9.5], [4.0, 4.0, 4.2, 4.1], [7.0, 6.0, 3.0, 2.0]],
        np.float32,
    )
    input = normal(2, 3, 8, 9)
    for settings in (
        {"aligned": False, "sampling_ratio": 2, "spatial_scale": 1.0},
        {"aligned": True, "sampling_ratio": 3, "spatial_scale": 0.5},
        {"aligned": True, "sampling_ratio": -1, "spatial_scale": 1.0},
        {"aligned": False, "sampling_ratio": 0, "spatial_scale": 1.7},
    ):
        # Paddle takes the size of a region turned inside out for a huge number of samples.
        some = rois if settings["sampling_ratio"] > 0 else rois[:3]
        inputs = {"input": input, "rois": some, "counts": np.array([1, len(some) - 1], np.int32)}
        yield inputs, {"output_height": 3, "output_width": 2, **settings}


def roi_align(
    input: Any, rois: Any, counts: Any, output_height: int, output_width: int, **settings: Any
) -> Sequence[Any]:
    size = (output_height, output_width)
    return [paddle.vision.ops.roi_align(input, rois, counts, size, **settings)]


def deformable_conv_cases() -> Iterator[Case]:
    for masked, group, deformable_group, window in (
        (True, 1, 1, {"strides": [1, 1], "pads": [0, 0], "dilations": [1, 1]}),
        (True, 2, 2, {"strides": [2, 1], "pads": [1, 2], "dilations": [1, 2]}),
        (False, 1, 4, {"strides": [1, 2], "pads": [2, 0], "dilations": [2, 1]}),
        (True, 4, 1, {"strides": [2, 2], "pads": [1, 1], "dilations": [1, 1]}),
    ):
        height, width = (
            (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
            for size, pad, dilation, kernel, stride in zip(
                (7, 8), window["pads"], window["dilations"], (3, 2), window["strides"], strict=True
            )
        )
        inputs = {
            "input": normal(2, 4, 7, 8),
            "offset": 2 * normal(2, 2 * deformable_group * 6, height, width),
            "filter": normal(8, 4 // group, 3, 2),
            "bias": normal(8),
        }
        if masked:
            inputs["mask"] = uniform(0, 1, 2, deformable_group * 6, height, width)
        yield inputs, {"group": group, "deformable_group": deformable_group, **window}


def deformable_conv(
    input: Any,
    offset: Any,
    filter: Any,
    bias: Any,
    group: int,
    deformable_group: int,
    strides: list[int],
    pads: list[int],
    dilations: list[int],
    mask: Any = None,
) -> Sequence[Any]:
    return [
        paddle.vision.ops.deform_conv2d(
            input, offset, filter, bias, strides, pads, dilations, deformable_group, group, mask
        )
    ]


def grid_sample_cases() -> Iterator[Case]:
    for mode in ("bilinear", "nearest"):
        for padding_mode in ("zeros", "border", "reflection"):
            for align_corners in (False, True):
                inputs = {"input": normal(2, 2, 5, 6), "grid": uniform(-2.5, 2.5, 2, 3, 4, 2)}
                how = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
                yield inputs, how


def grid_sample(input: Any, grid: Any, **settings: Any) -> Sequence[Any]:
    return [paddle.nn.functional.grid_sample(input, grid, **settings)]


def multiclass_nms_cases() -> Iterator[Case]:
    common = {
        "background_label": -1,
        "score_threshold": 0.2,
        "nms_top_k": -1,
        "nms_threshold": 0.3,
        "nms_eta": 1.0,
        "keep_top_k": -1,
        "normalized": True,
    }
    for settings in (
        {},
        {"background_label": 0, "nms_top_k": 10, "keep_top_k": 8},
        {"nms_threshold": 0.7, "nms_eta": 0.9, "normalized": False},
        {"keep_top_k": 5, "score_threshold": 0.6},
        {"score_threshold": 1.5},
    ):
        scores = uniform(0, 1, 2, 3, 25)
        if settings.get("keep_top_k") == 5:
            scores = np.round(scores, 1)
        yield {"bboxes": boxes(2, 25), "scores": scores}, {**common, **settings}
    for settings in ({}, {"keep_top_k": 6, "background_label": 1}):
        counts = np.array([9, 0, 12], np.int32)
        inputs = {"bboxes": boxes(21, 3), "scores": uniform(0, 1, 21, 3), "rois_num": counts}
        yield inputs, {**common, **settings}


def polygons(*shape: int, corners: int) -> Array:
    """Polygons around their centres, many of which overlap."""
    angle = np.sort(uniform(0, 2 * np.pi, *shape, corners))
    around = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * uniform(3, 9, *shape, corners, 1)
    corner_points: Array = uniform(0, 20, *shape, 1, 2) + around
    return corner_points.reshape(*shape, -1).astype(np.float32)


def polygon_nms_cases() -> Iterator[Case]:
    common = {
        "background_label": -1,
        "score_threshold": 0.2,
        "nms_top_k": -1,
        "nms_threshold": 0.2,
        "nms_eta": 1.0,
        "keep_top_k": -1,
        "normalized": True,
    }
    for corners, settings in (
        (4, {}),
        (8, {"background_label": 0, "nms_top_k": 10, "keep_top_k": 8}),
        (12, {"nms_threshold": 0.7, "nms_eta": 0.7, "normalized": False}),
        (16, {"keep_top_k": 5, "score_threshold": 0.6}),
        (4, {"score_threshold": 1.5}),
    ):
        inputs = {"bboxes": polygons(2, 25, corners=corners), "scores": uniform(0, 1, 2, 3, 25)}
        yield inputs, {**common, **settings}
    # Sides that cross, whole coordinates: common vertices, level sides and equal polygons.
    yield {"bboxes": normal(2, 12, 16), "scores": uniform(0, 1, 2, 2, 12)}, common
    squares = np.round(boxes(1, 30)[..., [0, 1, 2, 1, 2, 3, 0, 3]] / 8)
    yield {"bboxes": squares, "scores": uniform(0, 1, 1, 2, 30)}, common


def multiclass_nms(
    bboxes: Any, scores: Any, rois_num: Any = None, **settings: Any
) -> Sequence[Any]:
    order = ("score_threshold", "nms_top_k", "keep_top_k", "nms_threshold", "normalized")
    arguments = [settings[name] for name in (*order, "nms_eta", "background_label")]
    found, index, counts = _C_ops.multiclass_nms3(bboxes, scores, rois_num, *arguments)
    return [found, counts, index]


def pool_cases() -> Iterator[Case]:
    for kind in ("avg", "max"):
        for settings in (
            {"ksize": [3, 2], "strides": [2, 2], "paddings": [1, 0], "ceil_mode": True},
            {"ksize": [2, 2], "strides": [3, 3], "paddings": [0, 1, 1, 1], "ceil_mode": True},
            {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 0, 2, 1], "exclusive": False},
            {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1], "exclusive": False,
             "ceil_mode": True},
            {"ksize": [3, 2], "strides": [2, 2], "padding_algorithm": "SAME"},
            {"ksize": [3, 2], "strides": [1, 2], "padding_algorithm": "VALID"},
        ):  # fmt: skip
            yield {"input": normal(2, 3, 7, 9)}, {"pooling_type": kind, **settings}
        yield {"input": normal(2, 3, 7, 9)}, {"adaptive": kind, "ksize": [3, 4]}


def pool(
    input: Any,
    ksize: list[int],
    pooling_type: str = "",
    adaptive: str = "",
    strides: Sequence[int] = (1, 1),
    paddings: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    exclusive: bool = True,
    padding_algorithm: str = "EXPLICIT",
) -> Sequence[Any]:
    if adaptive:
        compute = getattr(paddle.nn.functional, f"adaptive_{adaptive}_pool2d")
        return [compute(input, ksize)]
    return [
        _C_ops.pool2d(
            input, ksize, list(strides), list(paddings), ceil_mode, exclusive, "NCHW",
            pooling_type, False, False, padding_algorithm,
        )
    ]  # fmt: skip


def volume_pool_cases() -> Iterator[Case]:
    """The attributes of `pool3d`, and of `max_pool3d_with_index` where no kind is named."""
    volume = {"input": normal(2, 2, 5, 6, 7)}
    windows = {"ksize": [3, 2, 2], "strides": [2, 3, 2]}
    for settings in (
        {"pooling_type": "max", "ksize": [2, 3, 2], "adaptive": True},
        {"pooling_type": "max", "ksize": [2, 3, 2], "strides": [2, 2, 3], "adaptive": True},
        {"pooling_type": "max", **windows, "paddings": [1, 1, 1], "ceil_mode": True},
        {"pooling_type": "avg", **windows, "paddings": [1, 1, 1], "ceil_mode": True},
        {"pooling_type": "avg", **windows, "paddings": [0, 1, 1, 0, 1, 1], "exclusive": False},
        {"pooling_type": "avg", **windows, "padding_algorithm": "SAME", "exclusive": False},
        {"pooling_type": "avg", "ksize": [2, 3, 2], "adaptive": True},
        {"pooling_type": "avg", "ksize": [1, 1, 1], "adaptive": True, "global_pooling": True},
        {"pooling_type": "avg", "ksize": [1, 1, 1], "global_pooling": True},
        {"ksize": [2, 3, 2], "strides": [2, 1, 2], "paddings": [1, 1, 0]},
        {"ksize": [2, 3, 4], "adaptive": True},
        {"ksize": [1, 1, 1], "global_pooling": True},
    ):
        yield volume, settings


def volume_pool(
    input: Any,
    ksize: Sequence[int],
    pooling_type: str = "",
    strides: Sequence[int] = (1, 1, 1),
    paddings: Sequence[int] = (0, 0, 0),
    ceil_mode: bool = False,
    exclusive: bool = True,
    padding_algorithm: str = "EXPLICIT",
    global_pooling: bool = False,
    adaptive: bool = False,
) -> Sequence[Any]:
    where = (list(ksize), list(strides), list(paddings))
    if not pooling_type:
        return list(_C_ops.max_pool3d_with_index(input, *where, global_pooling, adaptive))
    return [
        _C_ops.pool3d(
            input, *where, ceil_mode, exclusive, "NCDHW",
            pooling_type, global_pooling, adaptive, padding_algorithm,
        )
    ]  # fmt: skip


def interp_cases() -> Iterator[Case]:
    for mode in ("nearest", "bilinear", "bicubic"):
        for settings in (
            {"size": [10, 4]},
            {"size": [3, 13]},
            {"size": [7, 9], "align_corners": True},
            {"scale_factor": [1.5, 0.6]},
            {"size": [1, 5], "align_mode": 1},
        ):
            if mode != "bilinear" and "align_mode" in settings:
                continue
            yield {"input": normal(1, 2, 5, 7)}, {"mode": mode, **settings}


def interp(
    input: Any,
    mode: str,
    size: Sequence[int] = (-1, -1),
    scale_factor: Sequence[float] = (),
    align_corners: bool = False,
    align_mode: int = 0,
) -> Sequence[Any]:
    compute = getattr(_C_ops, f"{mode}_interp")
    layout, scales = ("NCHW", -1, *size), list(scale_factor)
    return [compute(input, None, None, None, *layout, scales, mode, align_corners, align_mode)]


OPERATORS: Mapping[str, tuple[Callable[[], Iterator[Case]], Callable[..., Sequence[Any]]]] = {
    "yolo_box": (yolo_box_cases, yolo_box),
    "prior_box": (prior_box_cases, prior_box),
    "roi_align": (roi_align_cases, roi_align),
    "deformable_conv": (deformable_conv_cases, deformable_conv),
    "grid_sample": (grid_sample_cases, grid_sample),
    "multiclass_nms3": (multiclass_nms_cases, multiclass_nms),
    "pool2d": (pool_cases, pool),
    "pool3d": (volume_pool_cases, volume_pool),
    "interp_v2": (interp_cases, interp),
    "polygon_nms": (polygon_nms_cases, multiclass_nms),
}


def main() -> None:
    """Record every operator into the folder that the command names."""
    paddle.set_device("cpu")
    folder = Path(sys.argv[1])
    for operator, (cases, compute) in OPERATORS.items():
        stored: dict[str, Any] = {"oracle": np.array(f"paddlepaddle {paddle.__version__}")}
        for number, (inputs, settings) in enumerate(cases()):
            tensors = {name: paddle.to_tensor(array) for name, array in inputs.items()}
            results = compute(**tensors, **settings)
            stored[f"{number}/settings"] = np.array(json.dumps(settings))
            for name, array in inputs.items():
                stored[f"{number}/input/{name}"] = array
            for index, result in enumerate(results):
                stored[f"{number}/output/{index}"] = result.numpy()
        np.savez_compressed(folder / f"paddle_{operator}.npz", **stored)


if __name__ == "__main__":
    main()
