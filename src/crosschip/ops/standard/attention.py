"""Operators of transformers: attention and rotary position embedding."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import exact_quotient
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, reshape
from crosschip.ops.definition.shapes import broadcast, unify
from crosschip.ops.definition.slots import choice, flag, integer, optional_tensor, real, tensor
from crosschip.ops.numerics.attention import attend, merge_heads, rotate, split_heads
from crosschip.ops.standard.activation import Softmax, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from crosschip.ops.standard.comparison import LessEqual
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.slicing import Slice


class Causality(IntEnum):
    """Restriction of attention by the positions of queries and keys."""

    NONE = 0
    """No restriction."""
    FROM_FIRST = 1
    """Query `i` attends to keys 0 to `i`."""
    TO_LAST = 2
    """Query `i` attends to keys 0 to `i + T - S`; the last of S queries to all T keys."""


@operator("ATTENTION")
class Attention(Operator):
    """Scaled dot-product attention: `output = softmax(scores) @ value` for each head.

    The query is [N, H, S, D], the key [N, K, T, D], the value [N, K, T, V], the output [N, H, S,
    V]: N entries, H heads of S queries, K heads of T keys. K divides H, and H / K consecutive query
    heads share a key head. Any input may instead have its heads in the last axis, as in [N, S, H *
    D]: `num_heads` is H, and `key_heads` K, by default H. The output has the query's form.

    `scores = query @ transpose(key) * scale`, [N, H, S, T]; a `scale` of 0 means `1 / sqrt(D)`. A
    nonzero `softcap` bounds them: `softcap * tanh(scores / softcap)`. Then the mask is added; where
    a boolean mask is false, the key is not attended to. The mask broadcasts to the scores without
    enlarging them. `causality` excludes further keys. The softmax is over the keys.

    If the query, key, value or mask contains NaN or an infinity (except -infinity in the mask), the
    result is unspecified; so is the output of a query that attends to no key.

    Source: Vaswani et al., "Attention Is All You Need", https://arxiv.org/abs/1706.03762; ONNX's
    Attention.
    """

    __slots__ = ()
    query = tensor(FLOATS)
    key = tensor(FLOATS, like="query")
    value = tensor(FLOATS, like="query")
    mask = optional_tensor(FLOATS | BOOLEANS)
    causality = choice(Causality, Causality.NONE)
    scale = real(0.0)
    softcap = real(0.0, least=0)
    num_heads = integer(0)
    key_heads = integer(0)

    def multiply_adds(self) -> Dim:
        entries, heads, rows, size = self.with_heads_axis("query")
        _, _, columns, value_size = self.with_heads_axis("value")
        return entries * heads * rows * columns * (size + value_size)

    def infer_shape(self) -> Shape:
        query, key, value = (self.with_heads_axis(slot) for slot in ("query", "key", "value"))
        for slot, shape in (("key", key), ("value", value)):
            unify(shape[0], query[0], f"{slot}: its entries, and the query's")
        if unify(key[3], query[3], "key: its last size, and the query's") == 0:
            raise ValueError("query: its heads have no numbers")
        for axis in (1, 2):
            unify(value[axis], key[axis], f"value: its size on axis {axis}, and the key's")
        heads, key_heads = query[1], key[1]
        if (
            isinstance(heads, int)
            and isinstance(key_heads, int)
            and (not key_heads or heads % key_heads)
        ):
            raise ValueError(f"key: {key_heads} heads do not divide the query's {heads}")
        self._check_mask((*query[:3], key[2]))
        if len(shape_of(self.query)) == 4:
            return (*query[:3], value[3])
        return (query[0], query[2], heads * value[3])

    def heads(self, slot: str) -> int:
        """Return the number of heads in a slot whose heads are in the last axis."""
        return self.num_heads if slot == "query" else self.key_heads or self.num_heads

    def with_heads_axis(self, slot: str) -> Shape:
        """Return the shape of query, key or value with a separate axis of heads."""
        operand = self.operand(slot)
        assert operand is not None, "it is required"
        shape, heads = shape_of(operand), self.heads(slot)
        if len(shape) == 4:
            return shape
        if len(shape) != 3:
            raise ValueError(f"{slot}: has {len(shape)} axes, but must have 3 or 4")
        if heads < 1:
            raise ValueError(f"num_heads: {heads} is not positive")
        entries, positions, width = shape
        if isinstance(width, int) and width % heads:
            raise ValueError(f"{slot}: {heads} heads do not divide {width} numbers")
        return (entries, heads, positions, exact_quotient(width, heads))

    def _check_mask(self, scores: Shape) -> None:
        if self.mask is None:
            return
        element_type = self.mask.type.element_type
        if element_type not in BOOLEANS and element_type is not self.query.type.element_type:
            raise ValueError(f"mask: is {element_type}, but must be bool or like the query")
        mask = shape_of(self.mask)
        if len(mask) > 4:
            raise ValueError(f"mask: has {len(mask)} axes, more than the scores' 4")
        stretched = broadcast(scores, mask, slot="mask")
        if any(
            isinstance(new, int) and isinstance(old, int) and new != old
            for new, old in zip(stretched, scores, strict=True)
        ):
            raise ValueError("mask: would make the scores larger")

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        *parts, mask = axes[:4]
        if self.mask is None:
            mask_is_common = True
        else:
            shape = shape_of(self.mask)
            rows = 0 if len(shape) == 4 else None
            mask_is_common = mask == rows if mask is not None else len(shape) < 4 or shape[0] == 1
        return 0 if mask_is_common and set(parts) == {0} else None

    @property
    def factor(self) -> float | None:
        """Return the factor of the scores; `None` if it depends on an unknown size."""
        size = self.with_heads_axis("query")[3]
        if self.scale:
            return self.scale
        return float(np.float32(size) ** -0.5) if isinstance(size, int) and size else None

    def reference(self, query: Array, key: Array, value: Array, mask: Array | None) -> Array:
        is_flat = query.ndim == 3
        query, key, value = (
            operand if operand.ndim == 4 else split_heads(operand, self.heads(slot))
            for slot, operand in (("query", query), ("key", key), ("value", value))
        )
        if self.causality is not Causality.NONE:
            rows, columns = query.shape[2], key.shape[2]
            offset = columns - rows if self.causality is Causality.TO_LAST else 0
            visible = np.tri(rows, columns, offset, bool)
            if mask is None:
                mask = visible
            else:
                mask = mask & visible if mask.dtype == bool else np.where(visible, mask, -np.inf)
        output = attend(query, key, value, mask, self.scale, self.softcap)
        return merge_heads(output) if is_flat else output

    def decompose(self, b: Builder) -> Operand | None:
        if self.causality is not Causality.NONE:
            return self._replace_causality(b)
        if any(len(shape_of(operand)) == 3 for operand in (self.query, self.key, self.value)):
            return self._build_split_heads(b)
        factor = self.factor
        if factor is None:
            return None
        key, value = (self.repeat_heads(b, operand) for operand in (self.key, self.value))
        if key is None or value is None:
            return None
        query = b.add(Mul, self.query, factor)
        scores = b.add(MatMul, query, key, transpose_y=True)
        if self.softcap:
            curve = b.add(Tanh, b.add(Mul, scores, 1 / self.softcap))
            scores = b.add(Mul, curve, self.softcap)
        if self.mask is not None:
            if self.mask.type.element_type is ElementType.BOOL:
                scores = b.add(Where, self.mask, scores, self._excluded_score)
            else:
                scores = b.add(Add, scores, self.mask)
        return b.add(MatMul, b.add(Softmax, scores, -1), value)

    @property
    def _excluded_score(self) -> Array:
        """Return the score of a key that is not attended to."""
        return np.array(-np.inf, self.query.type.element_type.dtype)

    def _replace_causality(self, b: Builder) -> Operand:
        """Build the same attention with `causality` replaced by a mask."""
        mask, causal = self.mask, self._causal_mask(b)
        if mask is None or causal is None:
            mask = causal or mask
        elif mask.type.element_type is ElementType.BOOL:
            mask = b.add(And, mask, causal)
        else:
            mask = b.add(Where, causal, mask, self._excluded_score)
        parameters = (self.operand(slot) for slot in ("scale", "softcap", "num_heads", "key_heads"))
        return b.add(Attention, self.query, self.key, self.value, mask, Causality.NONE, *parameters)

    def _build_split_heads(self, b: Builder) -> Operand | None:
        """Build the same attention on inputs of rank 4; `None` if a head's size is unknown."""
        operands = []
        for slot, operand in (("query", self.query), ("key", self.key), ("value", self.value)):
            _, heads, _, size = self.with_heads_axis(slot)
            if len(shape_of(operand)) == 3:
                if not isinstance(size, int):
                    return None
                rows = b.add(Reshape, operand, (0, 0, heads, size))
                operand = b.add(Transpose, rows, (0, 2, 1, 3))
            operands.append(operand)
        parameters = (self.operand(slot) for slot in ("mask", "causality", "scale", "softcap"))
        output = b.add(Attention, *operands, *parameters)
        if len(shape_of(self.query)) == 4:
            return output
        width = shape_of(self.outputs[0])[2]
        if not isinstance(width, int):
            return None
        return b.add(Reshape, b.add(Transpose, output, (0, 2, 1, 3)), (0, 0, width))

    def repeat_heads(self, b: Builder, operand: Operand) -> Operand | None:
        """Build keys or values repeated per query head; `None` if numbers of heads are unknown."""
        heads, operand_heads = shape_of(self.query)[1], shape_of(operand)[1]
        if heads == operand_heads:
            return operand
        if not isinstance(heads, int) or not isinstance(operand_heads, int):
            return None
        sizes = Sizes(b, operand)
        entries, _, *rest = sizes.shape
        grouped = (entries, operand_heads, heads // operand_heads, *rest)
        repeated = b.add(Expand, b.add(Unsqueeze, operand, (2,)), sizes(grouped))
        return reshape(b, repeated, sizes, grouped, (entries, heads, *rest))

    def _causal_mask(self, b: Builder) -> Operand | None:
        """Build the [S, T] mask of `causality`; `None` if queries attend to all keys.

        It is a constant if both sizes are known.
        """
        rows, columns = self.with_heads_axis("query")[2], self.with_heads_axis("key")[2]
        last = self.causality is Causality.TO_LAST
        if last and rows == 1:
            return None
        if isinstance(rows, int) and isinstance(columns, int):
            return b.constant(np.tri(rows, columns, columns - rows if last else 0, bool))
        zero = np.array(0)
        count, all_ = (
            b.add(Gather, b.add(ShapeOf, operand), np.array(len(shape_of(operand)) - 2), 0)
            for operand in (self.query, self.key)
        )
        positions = b.add(Range, zero, count, np.array(1))
        if last:
            positions = b.add(Add, positions, b.add(Sub, all_, count))
        keys = b.add(Range, zero, all_, np.array(1))
        return b.add(LessEqual, keys, b.add(Unsqueeze, positions, (1,)))


@operator("ROTARY_EMBEDDING")
class RotaryEmbedding(Operator):
    """Rotation of pairs of elements by angles that depend on their position.

    The input is [N, H, S, D], or [N, S, H * D] with `num_heads` H: N entries, S positions, H heads.
    The tables of cosines and sines are [M, R / 2] with `positions`, [N, S] or [1, S], which select
    rows (negative ones count from the end); or [N, S, R / 2] without `positions`. The first R of a
    head's D elements are rotated: `x` and `y` become `x * cos - y * sin` and `x * sin + y * cos`.
    Pair `i` is elements `i` and `i + R / 2`, or `2 * i` and `2 * i + 1` if `interleaved`; the other
    elements are unchanged. A position out of range is an error.

    Source: Su et al., "RoFormer", https://arxiv.org/abs/2104.09864; ONNX's RotaryEmbedding.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    cos = tensor(FLOATS, like="input")
    sin = tensor(FLOATS, like="input")
    positions = optional_tensor(INDICES)
    num_heads = integer(0)
    interleaved = flag(False)

    def infer_shape(self) -> Shape:
        shape, cos, sin = (shape_of(operand) for operand in (self.input, self.cos, self.sin))
        if len(shape) not in (3, 4):
            raise ValueError(f"input: has {len(shape)} axes, but must have 3 or 4")
        if len(shape) == 3 and self.num_heads < 1:
            raise ValueError(f"num_heads: {self.num_heads} is not positive")
        entries, _, positions, size = self._sizes(shape)
        rank = 3 if self.positions is None else 2
        for slot, table in (("cos", cos), ("sin", sin)):
            if len(table) != rank:
                raise ValueError(f"{slot}: has {len(table)} axes, but must have {rank}")
        for one, other in zip(cos, sin, strict=True):
            unify(one, other, "sin: its sizes, and those of cos")
        half = cos[-1]
        if isinstance(half, int) and isinstance(size, int) and 2 * half > size:
            raise ValueError(f"cos: {2 * half} numbers are more than the {size} of a head")
        if self.positions is None:
            unify(cos[0], entries, "cos: its entries, and the input's")
            unify(cos[1], positions, "cos: its places, and the input's")
        else:
            self._check_positions(entries, positions)
        return shape

    def _check_positions(self, entries: Dim, count: Dim) -> None:
        assert self.positions is not None, "asked for where there are some"
        shape = shape_of(self.positions)
        if len(shape) != 2:
            raise ValueError(f"positions: has {len(shape)} axes, but must have 2")
        if shape[0] != 1:
            unify(shape[0], entries, "positions: their entries, and the input's")
        unify(shape[1], count, "positions: their places, and the input's")

    def _sizes(self, shape: Shape) -> Shape:
        """Return the numbers of entries, heads, positions and elements per head."""
        if len(shape) == 4:
            return shape
        entries, positions, width = shape
        if isinstance(width, int) and width % self.num_heads:
            raise ValueError(f"num_heads: {self.num_heads} does not divide {width}")
        return (entries, self.num_heads, positions, exact_quotient(width, self.num_heads))

    def reference(self, input: Array, cos: Array, sin: Array, positions: Array | None) -> Array:
        is_flat = input.ndim == 3
        x = input
        if is_flat:
            heads = self.num_heads
            x = input.reshape(*input.shape[:2], heads, input.shape[2] // heads)
        if positions is not None:
            if np.any((positions < -len(cos)) | (positions >= len(cos))):
                raise ValueError(f"positions: one is not in [-{len(cos)}, {len(cos)})")
            cos, sin = cos[positions], sin[positions]
        cos, sin = (np.expand_dims(table, 2 if is_flat else 1) for table in (cos, sin))
        rotated = rotate(x, cos, sin, interleaved=self.interleaved)
        return rotated.reshape(input.shape)

    def decompose(self, b: Builder) -> Operand | None:
        shape, half = shape_of(self.input), shape_of(self.cos)[-1]
        size = self._sizes(shape)[3]
        if not isinstance(half, int) or not isinstance(size, int) or not half or not size:
            return None
        x, is_flat = self.input, len(shape) == 3
        if is_flat:
            x = b.add(Reshape, x, (0, 0, self.num_heads, size))
        cos, sin = (
            self._select_rows(b, table, 2 if is_flat else 1) for table in (self.cos, self.sin)
        )
        step = 2 if self.interleaved else 1
        first = (0, 2 * half) if self.interleaved else (0, half)
        second = (1, 2 * half) if self.interleaved else (half, 2 * half)
        real, imaginary = (
            b.add(Slice, x, (-1,), (start,), (end,), (step,)) for start, end in (first, second)
        )
        rotated = [
            b.add(Sub, b.add(Mul, real, cos), b.add(Mul, imaginary, sin)),
            b.add(Add, b.add(Mul, real, sin), b.add(Mul, imaginary, cos)),
        ]
        if self.interleaved:
            pairs = b.add(Concat, [b.add(Unsqueeze, part, (4,)) for part in rotated], 4)
            rotated = [b.add(Reshape, pairs, (0, 0, 0, 2 * half))]
        if 2 * half < size:
            rotated.append(b.add(Slice, x, (-1,), (2 * half,), (size,)))
        output = rotated[0] if len(rotated) == 1 else b.add(Concat, rotated, -1)
        return b.add(Reshape, output, (0, 0, self.num_heads * size)) if is_flat else output

    def _select_rows(self, b: Builder, table: Operand, axis: int) -> Operand:
        """Build the rows of a table for all positions, with an axis for heads."""
        if self.positions is not None:
            table = b.add(Gather, table, self.positions, 0)
        return b.add(Unsqueeze, table, (axis,))
