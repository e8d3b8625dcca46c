"""Non-maximum suppression of boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import COMPUTED, converts
from crosschip.ops.standard.suppression import NonMaxSuppression, NonMaxSuppressionIndices


def overlaps(boxes: Tensor, pixel: float = 0.0) -> Tensor:
    """Return the intersection over union of all pairs of [M, 4] boxes, lesser corners first.

    Args:
        boxes: the boxes.
        pixel: added to the difference of coordinates to get a side's length.
    """
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    common = torch.where((high < low).any(2), 0, (high - low + pixel).prod(2))
    sides = boxes[:, 2:] - boxes[:, :2]
    areas = torch.where((sides < 0).any(1), 0, (sides + pixel).prod(1))
    either = areas[:, None] + areas - common
    return torch.where((common > 0) & (either > 0), common / either, 0)


def suppress(
    order: Sequence[int], overlap: Tensor, threshold: float, most: int, eta: float = 1.0
) -> list[int]:
    """Select boxes in order, skipping those that overlap a box selected before.

    Args:
        order: the indices of the boxes.
        overlap: the overlap of each pair, [M, M].
        threshold: the greatest overlap that is allowed.
        most: the greatest number of selected boxes.
        eta: if less than 1, the threshold is multiplied by it after each selection while above 0.5.
    """
    selected: list[int] = []
    rows = overlap.cpu()
    covered = torch.full(rows.shape[:1], float("-inf"), dtype=rows.dtype)
    for box in order:
        if len(selected) >= most:
            break
        if not bool(covered[box] > threshold):
            selected.append(box)
            covered = torch.fmax(covered, rows[box])
            if eta < 1 and threshold > 0.5:
                threshold *= eta
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
            overlap = overlaps(corners[image])
            for label, ranking in enumerate(class_scores):
                order = ranked(ranking, enough[image, label])
                rows += [(image, label, box) for box in suppress(order, overlap, threshold, most)]
        return torch.tensor(rows, dtype=torch.int64, device=scores.device).reshape(-1, 3)

    return run


@converts(NonMaxSuppression, types=COMPUTED)
def non_max_suppression(op: NonMaxSuppression) -> Kernel:
    def run(boxes: Tensor, scores: Tensor, counts: Tensor | None) -> Sequence[Tensor]:
        tables, numbers, rows = [], [], 0
        for image_boxes, image_scores in _images(boxes, scores, counts):
            selected = _select(op, image_boxes, image_scores, by_index=counts is not None)
            pairs = torch.tensor(selected, dtype=torch.int64, device=boxes.device)
            labels, places = pairs.reshape(-1, 2).T
            chosen = image_boxes[labels, places], image_scores[labels, places, None]
            tables.append(torch.cat([labels[:, None].to(boxes.dtype), chosen[1], chosen[0]], 1))
            classes, count = image_scores.shape
            own = places if counts is None else places * classes + labels
            numbers.append(rows + own)
            rows += count if counts is None else count * classes
        sizes = torch.tensor([len(table) for table in tables], dtype=torch.int32)
        table = torch.cat([boxes.new_zeros((0, 6)), *tables])
        number = torch.cat([torch.zeros(0, dtype=torch.int64, device=boxes.device), *numbers])
        return [table, sizes, number[:, None]][: op.output_count()]

    return run


def _images(
    boxes: Tensor, scores: Tensor, counts: Tensor | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the boxes [C, M, 4] and the scores [C, M] of each image."""
    if counts is None:
        for own_boxes, own_scores in zip(boxes, scores, strict=True):
            yield own_boxes.expand(len(own_scores), *own_boxes.shape), own_scores
        return
    ends = torch.cumsum(counts, 0)[:-1].tolist()
    parts = (torch.tensor_split(part, ends) for part in (boxes, scores))
    for own_boxes, own_scores in zip(*parts, strict=True) if len(counts) else ():
        yield own_boxes.transpose(0, 1), own_scores.T


def _select(
    op: NonMaxSuppression, boxes: Tensor, scores: Tensor, *, by_index: bool
) -> list[tuple[int, int]]:
    """Return the class and the index of each selected box of an image."""
    selected: list[tuple[int, int]] = []
    enough = scores > torch.tensor(op.score_threshold, dtype=scores.dtype, device=scores.device)
    for label in range(len(scores)):
        if label != op.background_label:
            order = ranked(scores[label], enough[label])
            order = order[: op.nms_top_k] if op.nms_top_k >= 0 else order
            overlap = overlaps(boxes[label], 0.0 if op.normalized else 1.0)
            chosen = suppress(order, overlap, op.nms_threshold, len(order), op.nms_eta)
            selected += [(label, box) for box in chosen]
    if 0 <= op.keep_top_k < len(selected):
        best = sorted(selected, key=lambda entry: -float(scores[entry]))[: op.keep_top_k]
        selected = sorted(best, key=lambda entry: entry[0])
    return sorted(selected) if by_index else selected
