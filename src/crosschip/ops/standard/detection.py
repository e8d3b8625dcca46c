"""Boxes of object detectors: priors, decoding of network outputs, and detected objects."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, reshape
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.definition.slots import flag, integer, integers, real, reals, tensor
from crosschip.ops.definition.windows import static
from crosschip.ops.numerics.overlap import non_max_suppression, overlaps, rank_scores, row_lookup
from crosschip.ops.standard.activation import Sigmoid
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Exp


@operator("PRIOR_BOX")
class PriorBox(Operator):
    """Prior boxes of an SSD detector, for each pixel of a feature map.

    Only the height and width of `input` [N, C, H, W] (features) and `image` [N, C, image_h,
    image_w] are used. The outputs `boxes` and `variances` are [H, W, P, 4] in the element type of
    `input`: P boxes per pixel as x_min, y_min, x_max, y_max relative to the image, and `variances`
    for each.

    The centre of pixel (y, x) is `((x + offset) * step_w, (y + offset) * step_h)`; a step of 0
    means `image_w / W` (`image_h / H`). The ratios are 1 and each of `aspect_ratios` that is not
    within 1e-6 of a previous one; with `flip`, each is followed by its inverse. For each of
    `min_sizes`, in order, there is a box of `size * sqrt(ratio)` by `size / sqrt(ratio)` for each
    ratio, then, if there are `max_sizes`, a square with side `sqrt(size * max_size)` for the
    `max_size` with the same index. With `min_max_aspect_ratios_order`, the square with side `size`
    is first, that of the `max_size` second, followed by the other ratios. `clip` clamps the boxes
    to `[0, 1]`.

    Sources: NNAdapter's PRIOR_BOX, Paddle's prior_box; Liu et al., SSD, 2016 (arXiv:1512.02325).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    image = tensor(FLOATS)
    min_sizes = reals()
    max_sizes = reals(())
    aspect_ratios = reals((1.0,))
    variances = reals((0.1, 0.1, 0.2, 0.2))
    flip = flag(False)
    clip = flag(False)
    step_w = real(0.0)
    step_h = real(0.0)
    offset = real(0.5)
    min_max_aspect_ratios_order = flag(False)

    def output_count(self) -> int:
        return 2

    def infer_shape(self) -> Sequence[Shape]:
        _, _, height, width = require_rank(shape_of(self.input), 4, "input")
        require_rank(shape_of(self.image), 4, "image")
        if self.max_sizes and len(self.max_sizes) != len(self.min_sizes):
            raise ValueError(
                f"max_sizes: has {len(self.max_sizes)} sizes, but min_sizes {len(self.min_sizes)}"
            )
        if len(self.variances) != 4:
            raise ValueError(f"variances: has {len(self.variances)} numbers, but must have 4")
        if not self.min_sizes:
            raise ValueError("min_sizes: must list at least one size")
        for slot, numbers in (
            ("min_sizes", self.min_sizes),
            ("max_sizes", self.max_sizes),
            ("aspect_ratios", self.aspect_ratios),
        ):
            if not all(0 < number < math.inf for number in numbers):
                raise ValueError(f"{slot}: {list(numbers)} are not all positive and finite")
        return [(height, width, len(self._extents()), 4)] * 2

    def _ratios(self) -> list[float]:
        ratios = [1.0]
        for ratio in self.aspect_ratios:
            if all(abs(ratio - earlier) >= 1e-6 for earlier in ratios):
                ratios += [ratio, 1 / ratio] if self.flip else [ratio]
        return ratios

    def _extents(self) -> Array:
        """Return width and height of each box of a pixel."""
        extents = []
        for index, size in enumerate(self.min_sizes):
            oblongs = [(size * ratio**0.5, size / ratio**0.5) for ratio in self._ratios()]
            square = [((size * self.max_sizes[index]) ** 0.5,) * 2] if self.max_sizes else []
            if self.min_max_aspect_ratios_order:
                extents += oblongs[:1] + square + oblongs[1:]
            else:
                extents += oblongs + square
        return np.array(extents)

    def _boxes_and_variances(
        self, features: Sequence[int], image: Sequence[int]
    ) -> tuple[Array, Array]:
        """Return both outputs, in float64."""
        axes = []
        for step, size, pixels in zip((self.step_h, self.step_w), image, features, strict=True):
            step = step or size / max(pixels, 1)
            axes.append((np.arange(pixels) + self.offset) * step)
        y, x = np.meshgrid(*axes, indexing="ij")
        centres = np.stack([x, y], axis=-1)[:, :, None]
        halves = self._extents() / 2
        corners = np.concatenate([centres - halves, centres + halves], axis=-1)
        boxes = corners / np.array([image[1], image[0]] * 2)
        if self.clip:
            boxes = np.clip(boxes, 0, 1)
        return boxes, np.broadcast_to(np.array(self.variances), boxes.shape)

    def reference(self, input: Array, image: Array) -> Sequence[Array]:
        return [
            output.astype(input.dtype)
            for output in self._boxes_and_variances(input.shape[2:], image.shape[2:])
        ]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        """Build constants, since only sizes matter."""
        sizes = [static(shape_of(operand)[2:]) for operand in (self.input, self.image)]
        dtype = self.input.type.element_type.dtype
        return [b.constant(output.astype(dtype)) for output in self._boxes_and_variances(*sizes)]


@operator("YOLO_BOX")
class YoloBox(Operator):
    """Boxes and class scores decoded from the output of a YOLOv3 network.

    `input` is [N, A * (5 + class_num), H, W] for A pairs of `anchors` (width, height in pixels of
    the network's input): for each anchor and each cell of the grid the numbers t_x, t_y, t_w, t_h,
    an objectness, and one number per class. With `iou_aware`, A channels precede these: a predicted
    overlap for each anchor. `imgsize` [N, 2] is height and width of the images in whose coordinates
    boxes are returned. With `s` the logistic function:

    - `confidence = s(objectness)`; with `iou_aware`, `s(objectness) ** (1 - iou_aware_factor) *
      s(overlap) ** iou_aware_factor`;
    - centre x `(column + s(t_x) * scale_x_y - (scale_x_y - 1) / 2) * image_w / W`, likewise y;
    - width `exp(t_w) * anchor_w * image_w / (downsample_ratio * W)`, likewise the height.

    `downsample_ratio` is 1 or more, `iou_aware_factor` from 0 to 1.

    `boxes` [N, A * H * W, 4] are x_min, y_min, x_max, y_max, ordered by anchor, then row;
    `clip_bbox` clamps the minima to at least 0 and the maxima to at most `image - 1`. `scores` [N,
    A * H * W, class_num] are `confidence * s(class)`. Where the confidence is less than
    `conf_thresh`, box and scores are all 0.

    Sources: NNAdapter's YOLO_BOX, Paddle's yolo_box; Redmon and Farhadi, YOLOv3, 2018
    (arXiv:1804.02767).
    """

    __slots__ = ()
    input = tensor(FLOATS)
    imgsize = tensor(INDICES)
    anchors = integers()
    class_num = integer()
    conf_thresh = real()
    downsample_ratio = integer()
    clip_bbox = flag(True)
    scale_x_y = real(1.0)
    iou_aware = flag(False)
    iou_aware_factor = real(0.5)

    def output_count(self) -> int:
        return 2

    def infer_shape(self) -> Sequence[Shape]:
        batch, channels, height, width = require_rank(shape_of(self.input), 4, "input")
        if len(self.anchors) % 2 or not self.anchors:
            raise ValueError(f"anchors: {list(self.anchors)} are not pairs of width and height")
        if self.class_num < 0:
            raise ValueError(f"class_num: {self.class_num} is negative")
        if self.downsample_ratio < 1:
            raise ValueError(f"downsample_ratio: {self.downsample_ratio} is not positive")
        if not 0 <= self.iou_aware_factor <= 1:
            raise ValueError(f"iou_aware_factor: {self.iou_aware_factor} is not in [0, 1]")
        expected = self._anchor_count * (5 + self.class_num + self.iou_aware)
        unify(channels, expected, "input: its channels, and what anchors and class_num ask for")
        sizes = require_rank(shape_of(self.imgsize), 2, "imgsize")
        batch = unify(batch, sizes[0], "imgsize: its first size, and the input's")
        unify(sizes[1], 2, "imgsize: its second size, and the height and width of an image")
        count = height * width * self._anchor_count
        return [(batch, count, 4), (batch, count, self.class_num)]

    @property
    def _anchor_count(self) -> int:
        return len(self.anchors) // 2

    def reference(self, input: Array, imgsize: Array) -> Sequence[Array]:
        batch, _, *grid = input.shape
        count = len(self.anchors) // 2
        leading = count * self.iou_aware
        overlap = input[:, :leading].reshape(batch, leading, 1, *grid)
        cells = input[:, leading:].reshape(batch, count, 5 + self.class_num, *grid)
        confidence = _logistic(cells[:, :, 4:5])
        if self.iou_aware:
            factor = self.iou_aware_factor
            confidence = confidence ** (1 - factor) * _logistic(overlap) ** factor
        offset, half_anchor, cell = (a.astype(input.dtype) for a in self._layout(grid))
        image = imgsize[:, ::-1].reshape(batch, 1, 2, 1, 1).astype(input.dtype)
        shift = (self.scale_x_y - 1) / 2
        centre = (offset + _logistic(cells[:, :, :2]) * self.scale_x_y - shift) * image / cell
        half = np.exp(cells[:, :, 2:4]) * half_anchor * image
        low, high = centre - half, centre + half
        if self.clip_bbox:
            low, high = np.maximum(low, 0), np.minimum(high, image - 1)
        scores = confidence * _logistic(cells[:, :, 5:])
        dropped = confidence < np.array(self.conf_thresh, input.dtype)
        return [
            np.where(dropped, 0, numbers)
            .transpose(0, 1, 3, 4, 2)
            .reshape(batch, count * grid[0] * grid[1], numbers.shape[2])
            for numbers in (np.concatenate([low, high], axis=2), scores)
        ]

    def _layout(self, grid: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return three arrays that broadcast to [1, A, 2, H, W], with x and y on the third axis.

        They are the position of each cell, half of its anchors relative to the network's input, and
        the sizes of the grid.
        """
        y, x = np.meshgrid(np.arange(grid[0]), np.arange(grid[1]), indexing="ij")
        anchors = np.array(self.anchors).reshape(1, -1, 2, 1, 1)
        sizes = np.array([grid[1], grid[0]]).reshape(1, 1, 2, 1, 1)
        halves = anchors / np.maximum(sizes * self.downsample_ratio * 2, 1)
        return np.stack([x, y])[None, None], halves, sizes

    def decompose(self, b: Builder) -> Sequence[Operand]:
        sizes, grid = Sizes(b, self.input), static(shape_of(self.input)[2:])
        dtype, batch = self.input.type.element_type, sizes.shape[0]
        count, channels = self._anchor_count, 5 + self.class_num

        def channels_of(first: int, size: int) -> Operand:
            """Build `size` channels per anchor, from channel `first` on, as [N, A, size, H, W]."""
            part = _part(b, self.input, 1, first, first + count * size)
            merged = (batch, count * size, *grid)
            return reshape(b, part, sizes, merged, (batch, count, size, *grid))

        cells = channels_of(count * self.iou_aware, channels)
        confidence = b.add(Sigmoid, _part(b, cells, 2, 4, 5))
        if self.iou_aware:
            overlap = channels_of(0, 1)
            confidence = b.add(
                Mul,
                b.add(Pow, confidence, 1 - self.iou_aware_factor),
                b.add(Pow, b.add(Sigmoid, overlap), self.iou_aware_factor),
            )
        offset, half_anchor, cell = self._layout(grid)
        pair = b.add(Cast, self.imgsize, dtype)
        width_first = b.add(Gather, pair, np.array([1, 0]), axis=1)
        image = b.add(Reshape, width_first, (0, 1, 2, 1, 1))
        offsets = b.add(Mul, b.add(Sigmoid, _part(b, cells, 2, 0, 2)), self.scale_x_y)
        start = (offset - (self.scale_x_y - 1) / 2).astype(dtype.dtype)
        centre = b.add(Mul, b.add(Add, offsets, start), image)
        centre = b.add(Mul, centre, (1 / np.maximum(cell, 1)).astype(dtype.dtype))
        half = b.add(Mul, b.add(Exp, _part(b, cells, 2, 2, 4)), half_anchor.astype(dtype.dtype))
        half = b.add(Mul, half, image)
        low, high = b.add(Sub, centre, half), b.add(Add, centre, half)
        if self.clip_bbox:
            low, high = b.add(Max, low, 0.0), b.add(Min, high, b.add(Sub, image, 1.0))
        scores = b.add(Mul, confidence, b.add(Sigmoid, _part(b, cells, 2, 5, channels)))
        dropped = b.add(Less, confidence, self.conf_thresh)
        corners = b.add(Concat, parts=[low, high], axis=2)
        zero, outputs = b.constant(np.array(0, dtype.dtype)), []
        for numbers, size in ((corners, 4), (scores, self.class_num)):
            masked = b.add(Where, dropped, zero, numbers)
            transposed = b.add(Transpose, masked, (0, 1, 3, 4, 2))
            split = (batch, count, *grid, size)
            merged = (batch, count * grid[0] * grid[1], size)
            outputs.append(reshape(b, transposed, sizes, split, merged))
        return outputs


def _part(b: Builder, operand: Operand, axis: int, start: int, stop: int) -> Operand:
    return b.add(Slice, operand, (axis,), (start,), (stop,))


def _logistic(values: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-values)))


@operator("DETECTION_POST_PROCESS", core=True)
class DetectionPostProcess(Operator):
    """Objects decoded from the output of an SSD detector.

    For one image and M candidates: `bbox` [1, M, 4] (y, x, h, w, encoded), `scores` [1, M,
    num_classes], or [1, M, num_classes + 1] with a background class first, which is ignored, and
    `anchors` [M, 4] (y, x, h, w of the centre and the sides). With `scale` = (s_y, s_x, s_h, s_w),
    a candidate's centre is `y / s_y * anchor_h + anchor_y`, likewise x, its height `exp(h / s_h) *
    anchor_h`, likewise the width.

    Without `use_regular_nms`, candidates whose best class has a score of at least
    `nms_score_threshold` are visited in descending order of that score. A candidate is selected
    unless its overlap with a selected one exceeds `nms_iou_threshold`, until there are
    `max_detections`; each gives its `max_classes_per_detection` best classes (or as many as there
    are). With `use_regular_nms`, each class is processed separately, with at most
    `detections_per_class` selected candidates, and the best `max_detections` of all classes are
    returned. Equal scores are in the order of the candidates (and of the classes). An overlap is
    intersection over union, 0 if an area is not positive.

    Outputs, with `D = max_detections * max_classes_per_detection` entries (of which
    `use_regular_nms` fills `max_detections`), all float32: boxes [1, D, 4] as y_min, x_min, y_max,
    x_max; classes [1, D], counted from 0 without the background; scores [1, D]; and [1] the number
    of objects. Entries without an object are 0. `input_size` and `out_quantized` have no effect:
    boxes are in the unit of the anchors, and outputs are quantized if they declare a quantization.

    Sources: NNRt's DETECTION_POST_PROCESS, which is TensorFlow Lite's TFLite_Detection_PostProcess.
    """

    __slots__ = ()
    bbox = tensor(FLOATS)
    scores = tensor(FLOATS)
    anchors = tensor(FLOATS)
    input_size = integer(0)
    scale = reals((10.0, 10.0, 5.0, 5.0))
    nms_iou_threshold = real(0.5)
    nms_score_threshold = real(0.0)
    max_detections = integer(10)
    detections_per_class = integer(100)
    max_classes_per_detection = integer(1)
    num_classes = integer()
    use_regular_nms = flag(False)
    out_quantized = flag(False)

    def output_count(self) -> int:
        return 4

    def infer_element_type(self) -> ElementType:
        return ElementType.FLOAT32

    def infer_shape(self) -> Sequence[Shape]:
        boxes = require_rank(shape_of(self.bbox), 3, "bbox")
        scores = require_rank(shape_of(self.scores), 3, "scores")
        anchors = require_rank(shape_of(self.anchors), 2, "anchors")
        for slot, shape in (("bbox", boxes), ("scores", scores)):
            unify(shape[0], 1, f"{slot}: its first size, and the one image that there can be")
            unify(shape[1], anchors[0], f"{slot}: its second size, and the number of anchors")
        for slot, shape in (("bbox", boxes), ("anchors", anchors)):
            unify(shape[-1], 4, f"{slot}: the size of its last axis, and the numbers of a box")
        if isinstance(scores[2], int) and scores[2] - self.num_classes not in (0, 1):
            raise ValueError(f"scores: has {scores[2]} classes, but num_classes {self.num_classes}")
        if len(self.scale) != 4:
            raise ValueError(f"scale: has {len(self.scale)} numbers, but must have 4")
        least_of = {"num_classes": 1, "max_detections": 0, "max_classes_per_detection": 1}
        for slot, least in least_of.items():
            if getattr(self, slot) < least:
                raise ValueError(f"{slot}: {getattr(self, slot)} must not be less than {least}")
        entries = self.max_detections * self.max_classes_per_detection
        return [(1, entries, 4), (1, entries), (1, entries), (1,)]

    def reference(self, bbox: Array, scores: Array, anchors: Array) -> Sequence[Array]:
        encoded = bbox[0] / np.array(self.scale, bbox.dtype)
        centre = encoded[:, :2] * anchors[:, 2:] + anchors[:, :2]
        half = np.exp(encoded[:, 2:]) * anchors[:, 2:] / 2
        boxes = np.concatenate([centre - half, centre + half], axis=1)
        class_scores = scores[0][:, scores.shape[2] - self.num_classes :]
        overlaps_with = row_lookup(overlaps(boxes, 0.0))

        def picked(ranking: Array, most: int) -> list[int]:
            order = rank_scores(ranking, self.nms_score_threshold, np.greater_equal)
            return non_max_suppression(order, overlaps_with, self.nms_iou_threshold, 1.0, most)

        entries = self.max_detections * self.max_classes_per_detection
        detections: list[tuple[int, int]] = []
        if self.use_regular_nms:
            most = min(self.detections_per_class, self.max_detections)
            for label in range(self.num_classes):
                detections += [(box, label) for box in picked(class_scores[:, label], most)]
            detections = sorted(detections, key=lambda entry: -class_scores[entry])[
                : self.max_detections
            ]
            filled_entries, objects = list(range(len(detections))), len(detections)
        else:
            selected = (
                picked(class_scores.max(axis=1), self.max_detections) if self.num_classes else []
            )
            ranks = np.argsort(-class_scores, axis=1, kind="stable")[
                :, : self.max_classes_per_detection
            ]
            detections = [(box, int(label)) for box in selected for label in ranks[box]]
            filled_entries = [
                entry_index * self.max_classes_per_detection + rank
                for entry_index in range(len(selected))
                for rank in range(ranks.shape[1])
            ]
            objects = len(selected)
        outputs = [np.zeros((1, entries, 4)), np.zeros((1, entries)), np.zeros((1, entries))]
        for entry_index, (box, label) in zip(filled_entries, detections, strict=True):
            for output, value in zip(
                outputs, (boxes[box], label, class_scores[box, label]), strict=True
            ):
                output[0, entry_index] = value
        return [*outputs, np.array([objects], np.float32)]
