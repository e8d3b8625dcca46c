"""Non-maximum suppression of boxes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import COMPUTED, converts
from crosschip.ops.standard.suppression import NonMaxSuppressionIndices


def overlaps(boxes: Tensor) -> Tensor:
    """Return the intersection over union of all pairs of [M, 4] boxes, lesser corners first."""
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = torch.where((high < low).any(2), 0, (high - low).prod(2))
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = torch.where((sides < 0).any(1), 0, sides.prod(1))
    either = areas[:, None] + areas - common
    return torch.where((common > 0) & (either > 0), common / either, 0)


def suppress(order: Sequence[int], over: Tensor, most: int) -> list[int]:
    """Select boxes in order, skipping those that overlap a box selected before.

    Args:
        order: the indices of the boxes.
        over: whether each pair overlaps too much, [M, M].
        most: the greatest number of selected boxes.
    """
    selected: list[int] = []
    rows = over.cpu()
    covered = torch.zeros(rows.shape[0], dtype=torch.bool)
    for box in order:
        if len(selected) >= most:
            break
        if not covered[box]:
            selected.append(box)
            covered |= rows[box]
    return selected


def ranked(scores: Tensor, enough: Tensor) -> list[int]:
    """Return the indices of the scores that are enough, in descending, stable order."""
    (indices,) = torch.nonzero(enough, as_tuple=True)
    order = torch.sort(scores[indices], descending=True, stable=True).indices
    result: list[int] = indices[order].tolist()
    return result


@converts(NonMaxSuppressionIndices, types=COMPUTED)
def non_max_suppression_indices(op: NonMaxSuppressionIndices) -> Kernel:
    most, threshold, least = op.max_output_boxes_per_class, op.iou_threshold, op.score_threshold

    def run(boxes: Tensor, scores: Tensor) -> Tensor:
        first, second = boxes[..., :2], boxes[..., 2:]
        if op.center_point_box:
            low, high = first - second / 2, first + second / 2
        else:
            low, high = torch.minimum(first, second), torch.maximum(first, second)
        corners = torch.cat([low, high], -1)
        enough = scores > torch.tensor(least, dtype=scores.dtype, device=scores.device)
        rows: list[tuple[int, int, int]] = []
        for image, class_scores in enumerate(scores):
            over = overlaps(corners[image]) > threshold
            for label, ranking in enumerate(class_scores):
                order = ranked(ranking, enough[image, label])
                rows += [(image, label, box) for box in suppress(order, over, most)]
        return torch.tensor(rows, dtype=torch.int64, device=scores.device).reshape(-1, 3)

    return run
