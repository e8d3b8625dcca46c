"""Patterns of attention."""

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
from crosschip.passes.recognition.pattern import Replacement, SearchPattern

_LAST_SWAPPED = [0, 1, 3, 2]
_HEADS_SECOND = [0, 2, 1, 3]
_HEADS_SECOND_SWAPPED = [0, 2, 3, 1]


def _find_attention(parts: Parts, last: Operator) -> Replacement | None:
    """Match `SOFTMAX(query @ transposed key * scale + mask) @ value`.

    All operands have four axes, and the same batch and heads. The scale is a number by which
    scores, queries or keys are multiplied or divided. The mask is optional; on each axis its size
    is 1 or that of the scores. A dynamic number of keys is not compared.
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
    """Match `ATTENTION` on split heads that can take [N, S, H * D] operands instead.

    Queries, keys and values come from a `RESHAPE` to [N, S, H, D] and a `TRANSPOSE` to
    [N, H, S, D]; the output is transposed and reshaped back. N and S may be dynamic.
    """
    if not isinstance(last, Reshape):
        return None
    transposed_output = parts.of(last.input, Transpose)
    attention = parts.of(
        None if transposed_output is None else transposed_output.inputs[0], Attention
    )
    if (
        not isinstance(transposed_output, Transpose)
        or list(transposed_output.perm) != _HEADS_SECOND
    ):
        return None
    if not isinstance(attention, Attention) or not _has_four_axes(*attention.inputs[:3]):
        return None
    result_shape, shape = shape_of(last.outputs[0]), shape_of(attention.outputs[0])
    if result_shape[:2] != (shape[0], shape[2]) or len(result_shape) != 3:
        return None
    inputs = [
        _without_head_split(parts, operand)
        for operand in (attention.query, attention.key, attention.value)
    ]
    if not all(inputs):
        return None
    unsplit = [each for each in inputs if each is not None]
    heads, key_heads = (shape_of(each)[1] for each in (attention.query, attention.key))
    split_operations = dict.fromkeys(part for _, operations in unsplit for part in operations)
    options = [attention.operand(slot) for slot in ("mask", "causality", "scale", "softcap")]
    operands = [operand for operand, _ in unsplit]
    arguments = [*operands, *options, heads, 0 if key_heads == heads else key_heads]
    return Replacement(
        [*split_operations, attention, transposed_output, last], Attention, arguments
    )


@dataclass(frozen=True)
class _Scores:
    """Attention scores while they are traced from the softmax back to queries and keys.

    Attributes:
        product: the matrix product, with all scales that are not stripped yet.
        scale: the product of the stripped scales.
        mask: the mask that is added after scaling.
        parts: the operations between `product` and the softmax, in order.
    """

    product: Operand
    scale: float = 1.0
    mask: Operand | None = None
    parts: Sequence[Operation] = ()

    def before(self, operation: Operation, product: Operand, scale: float = 1.0) -> _Scores:
        """Return the scores before an operation that at most multiplies by a number."""
        parts = (operation, *self.parts)
        return replace(self, product=product, scale=self.scale * scale, parts=parts)


def _scores(parts: Parts, operand: Operand) -> Iterator[_Scores]:
    """Yield an operand as scores without a mask, then as scores plus either addend as mask."""
    yield _strip_scale(parts, _Scores(operand))
    addition = parts.of(operand, Add)
    if addition is not None:
        first, second = addition.inputs[:2]
        for scores, mask in ((first, second), (second, first)):
            if scores is not None:
                yield _strip_scale(parts, _Scores(scores, mask=mask, parts=(addition,)))


def _strip_scale(parts: Parts, scores: _Scores) -> _Scores:
    """Return the scores before their multiplications and divisions by numbers."""
    operation = parts.of(scores.product, Mul, Div)
    if operation is None:
        return scores
    first, second = operation.inputs[:2]
    pairs = [(first, second)] if isinstance(operation, Div) else [(first, second), (second, first)]
    for operand, by in pairs:
        factor = parts.number(by)
        if operand is not None and factor:
            scale = 1 / factor if isinstance(operation, Div) else factor
            return _strip_scale(parts, scores.before(operation, operand, scale))
    return scores


def _attention(parts: Parts, scores: _Scores, last: MatMul) -> Replacement | None:
    """Return the attention that scores belong to, without the operations after them, or `None`."""
    product = parts.of(scores.product, MatMul)
    if not isinstance(product, MatMul) or product.transpose_x:
        return None
    query, key = (_strip_scale(parts, _Scores(operand)) for operand in (product.x, product.y))
    keys, transpose = key.product, None
    if not product.transpose_y:
        transposed = parts.of(key.product, Transpose)
        perm = list(transposed.perm) if isinstance(transposed, Transpose) else None
        if transposed is None or perm not in (_LAST_SWAPPED, _HEADS_SECOND_SWAPPED):
            return None
        key = _strip_scale(parts, key.before(transposed, transposed.inputs[0] or key.product))
        keys = key.product
        if perm == _HEADS_SECOND_SWAPPED:
            transpose = _transpose_heads(keys, f"{last.name}.key")
            keys = transpose.outputs[0]
    if not _has_four_axes(query.product, keys) or not _are_consistent(query.product, keys, last.y):
        return None
    if not _mask_fits(scores.mask, (*shape_of(query.product)[:3], shape_of(keys)[2])):
        return None
    scale = scores.scale * query.scale * key.scale
    size = shape_of(keys)[3]
    if isinstance(size, int) and size and same_number(scale, size**-0.5):
        scale = 0.0
    arguments = [query.product, keys, last.y, scores.mask, Causality.NONE, scale]
    operations = [*query.parts, *key.parts, product, *scores.parts]
    return Replacement(operations, Attention, arguments, [] if transpose is None else [transpose])


def _transpose_heads(operand: Operand, name: str) -> Operation:
    """Return a transposition of [N, S, H, D] to [N, H, S, D]."""
    bound = Transpose(name, Transpose.bind(name, [operand, _HEADS_SECOND], {}))
    return bound.with_outputs((Operand(name, bound.infer()[0]),))


def _are_consistent(query: Operand, key: Operand, value: Operand) -> bool:
    """Return whether queries, keys and values have consistent shapes."""
    shapes = [shape_of(operand) for operand in (query, key, value)]
    alike = shapes[0][:2] == shapes[1][:2] == shapes[2][:2]
    return alike and shapes[1][2] == shapes[2][2] and shapes[0][3] == shapes[1][3]


def _mask_fits(mask: Operand | None, scores: Shape) -> bool:
    """Return whether a mask broadcasts to the shape of the scores."""
    if mask is None:
        return True
    shape = mask.type.shape
    if shape is None or len(shape) > 4 or mask.type.element_type not in WIDE:
        return False
    *before, keys = shape or (1,)
    score_sizes = scores[4 - len(shape or (1,)) : 3]
    broadcasts = all(
        size in (1, score_size) for size, score_size in zip(before, score_sizes, strict=True)
    )
    # A dynamic number of keys is only known to equal the number of values.
    is_open = not isinstance(keys, int) and not isinstance(scores[3], int)
    return broadcasts and (keys in (1, scores[3]) or is_open)


def _has_four_axes(*operands: Operand | None) -> bool:
    return all(
        o is not None and o.type.shape is not None and len(o.type.shape) == 4 for o in operands
    )


def _without_head_split(
    parts: Parts, operand: Operand
) -> tuple[Operand, Sequence[Operation]] | None:
    """Return the operand before heads are split, with the splitting operations, or `None`."""
    transposed = parts.of(operand, Transpose)
    if not isinstance(transposed, Transpose) or list(transposed.perm) != _HEADS_SECOND:
        return None
    split = parts.of(transposed.input, Reshape)
    shape = None if split is None else split.inputs[0].type.shape  # type: ignore[union-attr]
    if not isinstance(split, Reshape) or shape is None or len(shape) != 3:
        return None
    head_shape = shape_of(transposed.input)
    if shape[:2] != head_shape[:2] or not all(isinstance(size, int) for size in head_shape[2:]):
        return None
    return split.input, [split, transposed]


ATTENTION = SearchPattern("ATTENTION", MatMul, _find_attention)

JOINED_HEADS = SearchPattern("ATTENTION with heads in a row", Reshape, _find_joined_heads)
