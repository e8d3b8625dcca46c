"""Attention with a cache of the keys and values of previous runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape, unknown
from crosschip.ir.dimension import exact_quotient
from crosschip.ir.types import FLOATS, INDICES
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of
from crosschip.ops.definition.operator import shape_value_of as sizes_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import fail_if
from crosschip.ops.definition.shapes import unify
from crosschip.ops.definition.slots import flag, integer, optional_tensor, real, tensor
from crosschip.ops.numerics.attention import attend, merge_heads, rotate, split_heads
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mul, Sub
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding
from crosschip.ops.standard.comparison import Equal, Less, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Or, Where


@operator("GROUP_QUERY_ATTENTION")
class GroupQueryAttention(Operator):
    """Causal attention of new tokens to themselves and to the tokens of previous runs.

    The query is [N, S, H * D], key and value are [N, S, K * D]: N entries of S new tokens, with
    `num_heads` H for queries and `key_heads` K, which divides H, for keys and values. The past keys
    and values are [N, K, P, D] each; P is 0 if they are omitted. `lengths`, [N] or [N, 1], is each
    entry's number of tokens, old and new, minus one. `total` is one number, the maximum number of
    tokens of an entry: S, or P + S, or at most P if the past has space for the new tokens.

    Outputs are [N, S, H * D], and the updated keys and values, [N, K, T, D], where T is the maximum
    of P and `total`. If `total` is S, all tokens are new; otherwise an entry has `lengths + 1 - S`
    old tokens, the first of its past. They are followed by the new tokens, then zeros.

    With `cos` and `sin`, [M, R / 2], queries and keys are rotated as in `ROTARY_EMBEDDING`, by the
    token's position in the entry. Then follows `ATTENTION` with `scale` and `softcap`: a token
    attends to itself and to previous tokens; a nonzero `window` limits their total number.

    With several new tokens and a `total` other than S there must be a single entry. An invalid
    total is an error, and so is an invalid length, unless the device uses another length instead.
    If an entry has fewer than S tokens, outputs after its last token are unspecified; so are all
    outputs if an input contains NaN or an infinity.

    Source: Ainslie et al., "GQA", https://arxiv.org/abs/2305.13245; ONNX Runtime's
    GroupQueryAttention.
    """

    __slots__ = ()
    unenforced = frozenset({"lengths"})
    query = tensor(FLOATS)
    key = tensor(FLOATS, like="query")
    value = tensor(FLOATS, like="query")
    lengths = tensor(INDICES)
    total = tensor(INDICES)
    past_key = optional_tensor(FLOATS, like="query")
    past_value = optional_tensor(FLOATS, like="query")
    cos = optional_tensor(FLOATS, like="query")
    sin = optional_tensor(FLOATS, like="query")
    num_heads = integer()
    key_heads = integer()
    scale = real(0.0)
    softcap = real(0.0, least=0)
    window = integer(0)
    interleaved = flag(False)

    def output_count(self) -> int:
        return 3

    def multiply_adds(self) -> Dim:
        entries, tokens, width = self._rows("query")
        return entries * tokens * width * shape_of(self.outputs[1])[2] * 2

    def infer_shape(self) -> Sequence[Shape]:
        entries, tokens, width = self._rows("query")
        if self.num_heads < 1 or self.key_heads < 1 or self.num_heads % self.key_heads:
            raise ValueError(f"key_heads: {self.key_heads} do not divide {self.num_heads} heads")
        size = self._head_size(width, "query", self.num_heads)
        for slot in ("key", "value"):
            parts = self._rows(slot)
            unify(parts[0], entries, f"{slot}: its entries, and the query's")
            unify(parts[1], tokens, f"{slot}: its tokens, and the query's")
            unify(self._head_size(parts[2], slot, self.key_heads), size, f"{slot}: its heads' size")
        if self.window < 0:
            raise ValueError(f"window: {self.window} is negative")
        self._check_counts(entries)
        self._check_tables(size)
        past = self._check_past(entries, size)
        present = (entries, self.key_heads, self._present(past, tokens), size)
        return [(entries, tokens, width), present, present]

    @property
    def head_size(self) -> Dim:
        """Return the number of elements of a head."""
        return self._head_size(shape_of(self.query)[2], "query", self.num_heads)

    def _rows(self, slot: str) -> Shape:
        operand = self.operand(slot)
        assert operand is not None, "it is required"
        shape = shape_of(operand)
        if len(shape) != 3:
            raise ValueError(f"{slot}: has {len(shape)} axes, but must have 3")
        return shape

    def _head_size(self, width: Dim, slot: str, heads: int) -> Dim:
        if isinstance(width, int) and (not width or width % heads):
            raise ValueError(f"{slot}: {heads} heads do not divide {width} numbers")
        return exact_quotient(width, heads)

    def _check_counts(self, entries: Dim) -> None:
        lengths = shape_of(self.lengths)
        if len(lengths) not in (1, 2) or lengths[1:] not in ((), (1,)):
            raise ValueError("lengths: must be one number for each entry")
        unify(lengths[0], entries, "lengths: how many there are, and the entries")
        if any(size != 1 for size in shape_of(self.total) if isinstance(size, int)):
            raise ValueError("total: must be one number")

    def _check_past(self, entries: Dim, size: Dim) -> Dim:
        if self.past_key is None or self.past_value is None:
            if self.past_key is not self.past_value:
                raise ValueError("past_key: must be given together with past_value")
            return 0
        key, value = shape_of(self.past_key), shape_of(self.past_value)
        for slot, shape in (("past_key", key), ("past_value", value)):
            if len(shape) != 4:
                raise ValueError(f"{slot}: has {len(shape)} axes, but must have 4")
            expected_shape = (entries, self.key_heads, key[2], size)
            for axis, (actual, expected) in enumerate(zip(shape, expected_shape, strict=True)):
                unify(actual, expected, f"{slot}: its size on axis {axis}, and what it must be")
        return key[2]

    def _check_tables(self, size: Dim) -> None:
        if self.cos is None or self.sin is None:
            if self.cos is not self.sin:
                raise ValueError("cos: must be given together with sin")
            return
        cos, sin = shape_of(self.cos), shape_of(self.sin)
        if len(cos) != 2 or len(sin) != 2:
            raise ValueError("cos: it and sin must have 2 axes")
        for one, other in zip(cos, sin, strict=True):
            unify(one, other, "sin: its sizes, and those of cos")
        if isinstance(cos[1], int) and isinstance(size, int) and 2 * cos[1] > size:
            raise ValueError(f"cos: {2 * cos[1]} numbers are more than the {size} of a head")

    def _present(self, past: Dim, tokens: Dim) -> Dim:
        """Return the maximum of the past's size and the total."""
        try:
            (total,) = sizes_of(self.total)
        except UnknownRank:
            return unknown()
        if isinstance(total, int) and isinstance(past, int):
            return max(total, past)
        return total if total == past + tokens or past == 0 else unknown()

    def reference(
        self,
        query: Array,
        key: Array,
        value: Array,
        lengths: Array,
        total: Array,
        past_key: Array | None,
        past_value: Array | None,
        cos: Array | None,
        sin: Array | None,
    ) -> Sequence[Array]:
        entries, tokens, width = query.shape
        heads, key_heads, size = self.num_heads, self.key_heads, width // self.num_heads
        if past_key is None or past_value is None:
            past_key = past_value = np.zeros((entries, key_heads, 0, size), query.dtype)
        capacity, limit = past_key.shape[2], int(total.item())
        counts = lengths.ravel().astype(np.int64) + 1
        if limit not in (tokens, capacity + tokens) and not tokens <= limit <= capacity:
            raise ValueError(
                f"total: {limit} is neither {tokens}, {capacity + tokens}, nor at most {capacity}"
            )
        if tokens > 1 and limit != tokens and entries > 1:
            raise ValueError(f"query: {entries} entries add several tokens to a past")
        old = np.zeros_like(counts) if limit == tokens else counts - tokens
        if counts.size and (counts.min() < 1 or counts.max() > limit or old.min() < 0):
            raise ValueError(f"lengths: {lengths.ravel().tolist()} do not fit a total of {limit}")
        positions = np.minimum(old[:, None] + np.arange(tokens), counts[:, None] - 1)
        query, key, value = (
            split_heads(rows, count)
            for rows, count in ((query, heads), (key, key_heads), (value, key_heads))
        )
        if cos is not None and sin is not None:
            if positions.size and positions.max() >= len(cos):
                raise ValueError(f"cos: there is none for place {positions.max()}")
            angles = cos[positions][:, None], sin[positions][:, None]
            query, key = (rotate(x, *angles, interleaved=self.interleaved) for x in (query, key))
        capacity = max(capacity, limit)
        keys = _append_tokens(past_key, key, old, capacity)
        values = _append_tokens(past_value, value, old, capacity)
        rows = (old[:, None] + np.arange(tokens))[:, None, :, None]
        visible = np.arange(capacity) <= rows
        if self.window:
            visible &= np.arange(capacity) > rows - self.window
        output = attend(query, keys, values, visible, self.scale, self.softcap)
        return [merge_heads(output), keys, values]

    def decompose(self, b: Builder) -> Sequence[Operand] | None:
        size = self.head_size
        if not isinstance(size, int):
            return None
        count = _TokenPositions(b, self, size)
        query, key = self.query, self.key
        if self.cos is not None and self.sin is not None:
            last = b.add(Sub, count.lengths, count.one)
            positions = b.add(Min, count.rows, b.add(Unsqueeze, last, (1,)))
            query, key = (
                b.add(RotaryEmbedding, x, self.cos, self.sin, positions, heads, self.interleaved)
                for x, heads in ((query, self.num_heads), (key, self.key_heads))
            )
        keys = count.append_tokens(self.past_key, key)
        values = count.append_tokens(self.past_value, self.value)
        output = b.add(
            *(Attention, query, keys, values, count.attention_mask(self.window)),
            *(Causality.NONE, self.scale, self.softcap, self.num_heads),
        )
        return [output, keys, values]


def _append_tokens(past: Array, new: Array, old: Array, capacity: int) -> Array:
    """Return the old tokens of each entry followed by the new ones, and zeros up to `capacity`."""
    entries, heads, tokens, size = new.shape
    result = np.zeros((entries, heads, capacity, size), new.dtype)
    for entry, count in enumerate(old.tolist()):
        result[entry, :, :count] = past[entry, :, :count]
        result[entry, :, count : count + tokens] = new[entry, :, : capacity - count]
    return result


_MOST = 2**20
"""Limit of token counts, so that devices compare them exactly; real counts are smaller."""


class _TokenPositions:
    """Token positions, computed in int32 at run time.

    Attributes:
        one: the constant 1.
        lengths: the number of tokens of each entry, [N].
        rows: the positions of new tokens, [N, S].
    """

    def __init__(self, b: Builder, of: GroupQueryAttention, size: int) -> None:
        self._b = b
        self._heads = of.key_heads
        self._size = size
        self._zero, self.one = self._number(0), self._number(1)
        self._entries, self._tokens = (self._size_of(of.query, axis) for axis in (0, 1))
        self._room = self._zero if of.past_key is None else self._size_of(of.past_key, 2)
        self._held = b.add(Add, self._room, self._tokens)
        self.lengths = b.add(Add, self._clamp_count(of.lengths, (-1,)), self.one)
        total = self._clamp_count(of.total, ())
        is_new = b.add(Equal, total, self._tokens)
        old = b.add(Where, is_new, self._zero, b.add(Sub, self.lengths, self._tokens))
        total = self._check_total(total, is_new, old)
        self._old = b.add(Unsqueeze, old, (1,))
        self.rows = b.add(Add, self._old, self._range(self._tokens))
        self._columns = self._range(b.add(Max, self._room, total))
        self._new_index = b.add(Sub, self._columns, self._old)
        self._rows_of_tokens = self._token_rows()

    def attention_mask(self, window: int) -> Operand:
        """Build the mask of tokens that a new token attends to, [N, 1, S, T]."""
        b = self._b
        rows = b.add(Unsqueeze, self.rows, (1, 3))
        visible = b.add(LessEqual, self._columns, rows)
        if not window:
            return visible
        first = b.add(Sub, rows, self._number(window))
        return b.add(And, visible, b.add(Less, first, self._columns))

    def append_tokens(self, past: Operand | None, new: Operand) -> Operand:
        """Build old tokens followed by new ones, and zeros: [N, K, T, D]."""
        b = self._b
        heads = b.add(Reshape, new, (0, 0, self._heads, self._size))
        tokens = b.add(Transpose, heads, (0, 2, 1, 3))
        if past is not None:
            tokens = b.add(Concat, [past, tokens], 2)
        gathered = b.add(Gather, b.add(Reshape, tokens, (-1, self._size)), self._rows_of_tokens, 0)
        is_token = b.add(Unsqueeze, b.add(Less, self._new_index, self._tokens), (1, 3))
        return b.add(Where, is_token, gathered, np.array(0, new.type.element_type.dtype))

    def _token_rows(self) -> Operand:
        """Build the row of each token, [N, K, T], in the flattened heads of all entries."""
        b = self._b
        head_numbers = self._range(b.add(Mul, self._entries, self._number(self._heads)))
        starts = b.add(Reshape, b.add(Mul, head_numbers, self._held), (-1, self._heads, 1))
        last = b.add(Sub, self._tokens, self.one)
        new = b.add(Min, b.add(Max, self._new_index, self._zero), last)
        is_old = b.add(Less, self._new_index, self._zero)
        row = b.add(Where, is_old, self._columns, b.add(Add, self._room, new))
        return b.add(Add, starts, b.add(Unsqueeze, row, (1,)))

    def _number(self, value: int) -> Operand:
        return self._b.constant(np.array(value, np.int32))

    def _clamp_count(self, count: Operand, shape: tuple[int, ...]) -> Operand:
        """Build a token count, clamped so that valid counts are unchanged."""
        b = self._b
        flat = b.add(Reshape, b.add(Cast, count, ElementType.INT32), shape)
        return b.add(Max, b.add(Min, flat, self._number(_MOST)), self._number(-1))

    def _size_of(self, operand: Operand, axis: int) -> Operand:
        size = shape_of(operand)[axis]
        if isinstance(size, int):
            return self._number(size)
        sizes = self._b.add(ShapeOf, operand, ElementType.INT32)
        return self._b.add(Gather, sizes, np.array(axis), 0)

    def _range(self, end: Operand) -> Operand:
        return self._b.add(Range, self._zero, end, self.one)

    def _check_total(self, total: Operand, is_new: Operand, old: Operand) -> Operand:
        """Build the total, which fails at run time if it or a length is invalid."""
        b = self._b
        fits = b.add(Or, is_new, b.add(Equal, total, self._held))
        has_room = b.add(LessEqual, total, self._room)
        is_within = b.add(And, b.add(LessEqual, self._tokens, total), has_room)
        single = b.add(LessEqual, self._entries, self.one)
        is_single = b.add(Or, single, b.add(LessEqual, self._tokens, self.one))
        broken = [
            b.add(Not, b.add(Or, fits, is_within)),
            b.add(Not, b.add(Or, is_new, is_single)),
            b.add(Less, self.lengths, self.one),
            b.add(Less, total, self.lengths),
            b.add(Less, old, self._zero),
        ]
        flat = [b.add(Reshape, each, (-1,)) for each in broken]
        return fail_if(b, b.add(Concat, flat, 0), total)
