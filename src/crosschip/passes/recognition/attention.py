"""Attention that is written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from crosschip.ir import Operand, Operation, Shape
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.standard.activation import Softmax
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.attention import Attention, Causality
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.passes.recognition.parts import WIDE, Parts, same_number
from crosschip.passes.recognition.pattern import Replacement, Searched

_LAST_SWAPPED = [0, 1, 3, 2]
_HEADS_SECOND = [0, 2, 1, 3]
_HEADS_SECOND_SWAPPED = [0, 2, 3, 1]


def _find_attention(parts: Parts, last: Operator) -> Replacement | None:
    """`SOFTMAX(query @ transposed key * scale + mask) @ value`.

    All are of four axes, with as many entries and heads. The scale is a number by which scores,
    queries or keys are multiplied or divided. The mask may be left out, and where it is not of size
    1, it has the size of the scores, as far as anything is known of the number of keys.
    """
    if not isinstance(last, MatMul) or last.transpose_x or last.transpose_y:
        return None
    softmax = parts.of(last.x, Softmax)
    if not isinstance(softmax, Softmax) or not _has_four_axes(softmax.input, last.y):
        return None
    if softmax.axis not in (-1, 3):
        return None
    for scores in _scores(parts, softmax.input):
        attention = _attention(parts, scores, last)
        if attention is not None:
            return replace(attention, parts=[*attention.parts, softmax, last])
    return None


def _find_joined_heads(parts: Parts, last: Operator) -> Replacement | None:
    """`ATTENTION` that could read and make heads in a row, which are only set apart for it.

    Queries, keys and values come out of a `RESHAPE` to [N, S, H, D] and a `TRANSPOSE` to
    [N, H, S, D], and the output goes the way back. Sizes are numbers, but for N and S, which are
    kept.
    """
    if not isinstance(last, Reshape):
        return None
    back = parts.of(last.input, Transpose)
    whole = parts.of(None if back is None else back.inputs[0], Attention)
    if not isinstance(back, Transpose) or list(back.perm) != _HEADS_SECOND:
        return None
    if not isinstance(whole, Attention) or not _has_four_axes(*whole.inputs[:3]):
        return None
    result_shape, shape = shape_of(last.outputs[0]), shape_of(whole.outputs[0])
    if result_shape[:2] != (shape[0], shape[2]) or len(result_shape) != 3:
        return None
    inputs = [_joined(parts, operand) for operand in (whole.query, whole.key, whole.value)]
    if not all(inputs):
        return None
    joined = [each for each in inputs if each is not None]
    heads, key_heads = (shape_of(each)[1] for each in (whole.query, whole.key))
    before = dict.fromkeys(part for _, operations in joined for part in operations)
    more = [whole.operand(slot) for slot in ("mask", "causality", "scale", "softcap")]
    rows = [operand for operand, _ in joined]
    arguments = [*rows, *more, heads, 0 if key_heads == heads else key_heads]
    return Replacement([*before, whole, back, last], Attention, arguments)


@dataclass(frozen=True)
class _Scores:
    """Scores, on the way from the softmax back to queries and keys.

    Attributes:
        product: what makes them, in the end.
        scale: what products are multiplied by.
        mask: what is added to that.
        parts: the operations between, in order.
    """

    product: Operand
    scale: float = 1.0
    mask: Operand | None = None
    parts: Sequence[Operation] = ()

    def before(self, operation: Operation, product: Operand, scale: float = 1.0) -> _Scores:
        """The scores before an operation, which multiplies with a number at most."""
        parts = (operation, *self.parts)
        return replace(self, product=product, scale=self.scale * scale, parts=parts)


def _scores(parts: Parts, operand: Operand) -> Iterator[_Scores]:
    """The ways in which an operand may be scores: with a mask that is added, or without."""
    yield _unscaled(parts, _Scores(operand))
    addition = parts.of(operand, Add)
    if addition is not None:
        first, second = addition.inputs[:2]
        for scores, mask in ((first, second), (second, first)):
            if scores is not None:
                yield _unscaled(parts, _Scores(scores, mask=mask, parts=(addition,)))


def _unscaled(parts: Parts, scores: _Scores) -> _Scores:
    """The scores before they were multiplied with numbers."""
    operation = parts.of(scores.product, Mul, Div)
    if operation is None:
        return scores
    first, second = operation.inputs[:2]
    pairs = [(first, second)] if isinstance(operation, Div) else [(first, second), (second, first)]
    for operand, by in pairs:
        factor = parts.number(by)
        if operand is not None and factor:
            scale = 1 / factor if isinstance(operation, Div) else factor
            return _unscaled(parts, scores.before(operation, operand, scale))
    return scores


def _attention(parts: Parts, scores: _Scores, last: MatMul) -> Replacement | None:
    """The attention that scores belong to, without the operations behind them."""
    product = parts.of(scores.product, MatMul)
    if not isinstance(product, MatMul) or product.transpose_x:
        return None
    query, key = (_unscaled(parts, _Scores(operand)) for operand in (product.x, product.y))
    keys, transpose = key.product, None
    if not product.transpose_y:
        turned = parts.of(key.product, Transpose)
        perm = list(turned.perm) if isinstance(turned, Transpose) else None
        if turned is None or perm not in (_LAST_SWAPPED, _HEADS_SECOND_SWAPPED):
            return None
        key = _unscaled(parts, key.before(turned, turned.inputs[0] or key.product))
        keys = key.product
        if perm == _HEADS_SECOND_SWAPPED:
            transpose = _turned(keys, f"{last.name}.key")
            keys = transpose.outputs[0]
    if not _has_four_axes(query.product, keys) or not _fit(query.product, keys, last.y):
        return None
    if not _fits(scores.mask, (*shape_of(query.product)[:3], shape_of(keys)[2])):
        return None
    scale = scores.scale * query.scale * key.scale
    size = shape_of(keys)[3]
    if isinstance(size, int) and size and same_number(scale, size**-0.5):
        scale = 0.0
    arguments = [query.product, keys, last.y, scores.mask, Causality.NONE, scale]
    operations = [*query.parts, *key.parts, product, *scores.parts]
    return Replacement(operations, Attention, arguments, [] if transpose is None else [transpose])


def _turned(operand: Operand, name: str) -> Operation:
    """The operation that sets heads before places."""
    bound = Transpose(name, Transpose.bind(name, [operand, _HEADS_SECOND], {}))
    return bound.with_outputs((Operand(name, bound.infer()[0]),))


def _fit(query: Operand, key: Operand, value: Operand) -> bool:
    """Tell whether queries, keys and values have the same entries and heads, and fit otherwise."""
    shapes = [shape_of(operand) for operand in (query, key, value)]
    alike = shapes[0][:2] == shapes[1][:2] == shapes[2][:2]
    return alike and shapes[1][2] == shapes[2][2] and shapes[0][3] == shapes[1][3]


def _fits(mask: Operand | None, scores: Shape) -> bool:
    """Tell whether a mask makes no scores larger, and reads no other size than theirs."""
    if mask is None:
        return True
    shape = mask.type.shape
    if shape is None or len(shape) > 4 or mask.type.element_type not in WIDE:
        return False
    *before, keys = shape or (1,)
    own = scores[4 - len(shape or (1,)) : 3]
    alike = all(size in (1, wanted) for size, wanted in zip(before, own, strict=True))
    # What is known of the number of keys only in a run is that values have as many.
    is_open = not isinstance(keys, int) and not isinstance(scores[3], int)
    return alike and (keys in (1, scores[3]) or is_open)


def _has_four_axes(*operands: Operand | None) -> bool:
    return all(
        o is not None and o.type.shape is not None and len(o.type.shape) == 4 for o in operands
    )


def _joined(parts: Parts, operand: Operand) -> tuple[Operand, Sequence[Operation]] | None:
    """The heads of an operand in a row, and the operations that set them apart."""
    turned = parts.of(operand, Transpose)
    if not isinstance(turned, Transpose) or list(turned.perm) != _HEADS_SECOND:
        return None
    split = parts.of(turned.input, Reshape)
    shape = None if split is None else split.inputs[0].type.shape  # type: ignore[union-attr]
    if not isinstance(split, Reshape) or shape is None or len(shape) != 3:
        return None
    head_shape = shape_of(turned.input)
    if shape[:2] != head_shape[:2] or not all(isinstance(size, int) for size in head_shape[2:]):
        return None
    return split.input, [split, turned]


ATTENTION = Searched("ATTENTION", MatMul, _find_attention)

JOINED_HEADS = Searched("ATTENTION with heads in a row", Reshape, _find_joined_heads)
