"""Decoding of what a network says of sequences: beams, alignments, the best path of tags."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import Builder, ElementType, Operand
from crosschip.ops.standard.arithmetic import Add, FloorDiv, Min, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Greater, Less, NotEqual
from crosschip.ops.standard.indexing import Gather, GatherElements
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Or, Where
from crosschip.ops.standard.reduction import ReduceAll, ReduceMax, ReduceSum
from crosschip.ops.standard.searching import ArgMax, NonZero, TopK
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Log

_TO_END = 2**31 - 1
_BACKWARDS = (-1,), (-(2**31),), (-1,)
"""Where a slice of a whole axis that goes backwards begins and ends, and its step."""


@imports("gather_tree")
def gather_tree(op: Context) -> None:
    """The ids of each beam, from its last one back through its parents; over [T, N, beams]."""
    ids, parents = op.input("Ids"), op.input("Parents")
    kind = parents.type.element_type
    beams = op.as_type(ragged.numbers_up_to(op, ragged.size(op, ids, 2)), kind)
    sizes = [op.add(Reshape, ragged.size(op, ids, axis), (1,)) for axis in (1, 2)]
    first = op.add(Expand, beams, op.add(Concat, parts=sizes, axis=0))

    def step(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        gathered = [b.add(GatherElements, part, state, 1) for part in slices]
        return gathered[1], gathered[0]

    _, beam_ids = op.scan(first, [ids, parents], step, reverse=True)
    op.define(beam_ids)


@imports("crf_decoding")
def crf_decoding(op: Context) -> None:
    """The path of tags that emissions and transitions make most likely (Viterbi).

    Of the transitions, the first row is for the beginning and the second for the end.
    """
    emission, weights = op.input("Emission"), op.input("Transition")
    length_input = op.optional_input("Length")
    if length_input is None:
        offsets = op.levels("Emission")[-1]
        lengths = ragged.lengths(op, offsets)
        zero = op.constant(np.zeros((), emission.type.element_type.dtype), "zero")
        emission, _ = ragged.padded(op, emission, offsets, zero)
    else:
        lengths = op.as_type(op.add(Reshape, length_input, (-1,)), ElementType.INT64)
    tags = _best_path(op, emission, weights, lengths)
    if length_input is None:
        tags = op.add(Unsqueeze, ragged.unpadded(op, tags, lengths), (1,))
    if (label := op.optional_input("Label")) is not None:
        label = op.add(Reshape, op.as_type(label, ElementType.INT64), op.shape(tags))
        is_right = op.add(Equal, label, tags)
        if length_input is not None:
            # Nothing is right after the end of a sequence.
            places = ragged.numbers_up_to(op, ragged.size(op, tags, 1))
            is_inside = op.add(Less, places, op.add(Unsqueeze, lengths, (1,)))
            is_right = op.add(And, is_right, is_inside)
        tags = op.as_type(is_right, ElementType.INT64)
    op.define(tags, "ViterbiPath")


def _best_path(op: Context, emission: Operand, weights: Operand, lengths: Operand) -> Operand:
    """The tags [N, T], 0 after the end of a sequence, for emissions [N, T, tags]."""
    places = ragged.numbers_up_to(op, ragged.size(op, emission, 1))
    is_inside = op.add(Less, op.add(Unsqueeze, places, (1,)), lengths)
    steps = op.add(Transpose, emission, (1, 0, 2))
    begin, end = (
        op.add(Squeeze, op.add(Slice, weights, (0,), (row,), (row + 1,)), (0,)) for row in (0, 1)
    )
    moves = op.add(Unsqueeze, op.add(Slice, weights, (0,), (2,), (_TO_END,)), (0,))
    first = op.add(Squeeze, op.add(Slice, steps, (0,), (0,), (1,)), (0,))
    rest = [op.add(Slice, part, (0,), (1,), (_TO_END,)) for part in (steps, is_inside)]
    # A body is closed: what it reads from outside is scanned as well, the same at each step.
    count = op.add(Reshape, op.add(Sub, ragged.size(op, emission, 1), np.int64(1)), (1,))
    each = [ragged.size(op, weights, 1)] * 2
    sizes = [count, *(op.add(Reshape, size, (1,)) for size in each)]
    repeated = op.add(Expand, moves, op.add(Concat, parts=sizes, axis=0))

    def forward(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        emitted, inside, transition = slices
        score = b.add(Add, b.add(Unsqueeze, state, (2,)), transition)
        best = b.add(Add, b.add(ReduceMax, score, (1,), keepdim=False), emitted)
        last = b.add(ArgMax, score, 1, keepdim=False, dtype=ElementType.INT64)
        return b.add(Where, b.add(Unsqueeze, inside, (1,)), best, state), last

    score, tracks = op.scan(op.add(Add, first, begin), [*rest, repeated], forward)
    final = op.add(Add, score, end)
    tag = op.add(ArgMax, final, 1, keepdim=True, dtype=ElementType.INT64)

    def back(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        track, inside = slices
        is_in = b.add(Unsqueeze, inside, (1,))
        before = b.add(Where, is_in, b.add(GatherElements, track, state, 1), state)
        return before, b.add(Where, is_in, state, np.int64(0))

    start, path = op.scan(tag, [tracks, rest[1]], back, reverse=True)
    whole = op.add(Concat, parts=[op.add(Unsqueeze, start, (0,)), path], axis=0)
    tags = op.add(Transpose, op.add(Squeeze, whole, (2,)), (1, 0))
    return op.add(Where, op.add(Transpose, is_inside, (1, 0)), tags, np.int64(0))


@imports("ctc_align")
def ctc_align(op: Context) -> None:
    """Ids without blanks, and without repetitions where these are merged."""
    if op.inputs("InputLength"):
        _align_rows(op)
    else:
        _align_sequences(op)


def _is_wanted(op: Context, ids: Operand, before: Operand) -> Operand:
    """Tell of each id whether it is kept, given the one before it."""
    dtype = ids.type.element_type.dtype.type
    wanted = op.add(NotEqual, ids, dtype(op.integer("blank", 0)))
    if op.flag("merge_repeated", True):
        wanted = op.add(And, wanted, op.add(NotEqual, ids, before))
    return wanted


def _align_rows(op: Context) -> None:
    """A row for each sequence, with how long it is; filled up with a value."""
    ids, dtype = op.input("Input"), op.input("Input").type.element_type.dtype.type
    none = op.add(Reshape, ragged.size(op, ids), (1,))
    none = op.add(Concat, parts=[none, op.constant(np.ones(1, np.int64), "one")], axis=0)
    none = op.add(Expand, np.full((1, 1), -1, dtype), none)
    before = op.add(Concat, parts=[none, op.add(Slice, ids, (1,), (0,), (-1,))], axis=1)
    long = ragged.size(op, ids, 1)
    places = ragged.numbers_up_to(op, long)
    lengths = op.as_type(op.add(Reshape, op.input("InputLength"), (-1, 1)), ElementType.INT64)
    wanted = op.add(And, op.add(Less, places, lengths), _is_wanted(op, ids, before))
    key = op.add(Where, wanted, places, op.add(Add, places, long))
    _, order = op.add_all(TopK, key, long, axis=1, largest=False, sorted=True)
    wanted_numbers = op.as_type(wanted, ElementType.INT64)
    count = op.add(ReduceSum, wanted_numbers, (1,), keepdim=True)
    value = dtype(op.integer("padding_value", 0))
    aligned = op.add(GatherElements, ids, order, 1)
    op.make(Where, op.add(Less, places, count), aligned, value, output="Output")
    op.define(op.as_type(count, ids.type.element_type), "OutputLength")


def _align_sequences(op: Context) -> None:
    """Sequences of rows of one id; if nothing is left of all, there is one row, -1."""
    ids, offsets = op.add(Reshape, op.input("Input"), (-1,)), op.levels("Input")[0]
    dtype = ids.type.element_type.dtype.type
    rows = ragged.numbers_up_to(op, ragged.size(op, ids))
    owner = ragged.sequence_of_rows(op, offsets, rows)
    is_first = op.add(Equal, op.add(Gather, ragged.starts(op, offsets), owner, 0), rows)
    other = op.add(
        Gather, ids, op.add(Sub, rows, op.as_type(op.add(Not, is_first), rows.type.element_type)), 0
    )
    before = op.add(Where, is_first, dtype(-1), other)
    remaining = op.add(Squeeze, op.add(NonZero, _is_wanted(op, ids, before)), (0,))
    low, high = (
        op.add(Unsqueeze, part, (1,))
        for part in (ragged.starts(op, offsets), ragged.ends(op, offsets))
    )
    is_own = op.as_type(ragged.is_between(op, remaining, low, high), ElementType.INT64)
    counts = op.add(ReduceSum, is_own, (1,), keepdim=False)
    is_none = op.add(Equal, ragged.size(op, remaining), np.int64(0))
    one = op.add(Reshape, op.as_type(is_none, ElementType.INT64), (1,))
    nothing = op.add(Expand, np.array([-1], dtype), one)
    left = op.add(Concat, parts=[op.add(Gather, ids, remaining, 0), nothing], axis=0)
    op.make(Unsqueeze, left, (1,), output="Output")
    op.set_levels([ragged.offsets_of(op, counts)], "Output")


@imports("beam_search")
def beam_search(op: Context) -> None:
    """One step of a beam search: the best ids of each source, in the order of their beams.

    A source is a sequence of beams, which are rows; a beam that has ended goes on with its end. A
    source whose beams have all ended before is left out. Of equal scores, that of the later beam is
    the better one.
    """
    scores, end = op.input("scores"), np.int64(op.integer("end_id"))
    offsets = _rows_of_sources(op)
    count = ragged.size(op, scores)
    rows = op.add(Reshape, count, (1,))
    own_ids = op.add(Slice, op.add(Reshape, op.input("pre_ids"), (-1,)), (0,), (0,), rows)
    own_scores = op.add(Slice, op.add(Reshape, op.input("pre_scores"), (-1,)), (0,), (0,), rows)
    has_ended = op.add(Unsqueeze, op.add(Equal, own_ids, end), (1,))
    before = op.add(Unsqueeze, own_scores, (1,))
    if not op.flag("is_accumulated", True):
        scores = op.add(Add, before, op.add(Log, scores))
    width = ragged.size(op, scores, 1)
    columns = ragged.numbers_up_to(op, width)
    ids = op.optional_input("ids")
    ids = columns if ids is None else ids
    # One candidate is left of a beam that has ended: its end, with the score that it had.
    kind = scores.type.element_type.dtype.type
    rest = op.add(Where, op.add(Equal, columns, np.int64(0)), before, kind(-np.inf))
    scores = op.add(Where, has_ended, rest, scores)
    ids = op.add(Where, has_ended, end, ids)
    _select(op, scores, ids, own_ids, offsets, end)


def _rows_of_sources(op: Context) -> Operand:
    """The offsets of the sources in rows, not in sequences of the next level."""
    levels, level = op.levels("scores"), op.integer("level", 0)
    offsets = levels[level]
    for finer in levels[level + 1 :]:
        offsets = op.add(Gather, finer, offsets, 0)
    return offsets


def _select(
    op: Context,
    scores: Operand,
    ids: Operand,
    own_ids: Operand,
    offsets: Operand,
    end: np.int64,
) -> None:
    """Make the best candidates of each source, in the order of their rows."""
    width, kind = ragged.size(op, scores, 1), scores.type.element_type.dtype.type
    least = op.constant(np.array(-np.inf, kind), "least")
    beside, _ = ragged.padded(op, scores, offsets, least)
    long = ragged.size(op, beside, 1)
    # The later beams first.
    turned = op.add(Slice, beside, (1,), *_BACKWARDS)
    flat = op.add(Reshape, turned, (0, -1))
    most = op.add(Min, ragged.size(op, flat, 1), np.int64(op.integer("beam_size")))
    best_scores, places = op.add_all(TopK, flat, most, axis=1, largest=True, sorted=True)
    beam = op.add(Sub, op.add(Sub, long, np.int64(1)), op.add(FloorDiv, places, width))
    row = op.add(Add, op.add(Unsqueeze, ragged.starts(op, offsets), (1,)), beam)
    is_there = op.add(Greater, best_scores, kind(-np.inf))
    row = op.add(Where, is_there, row, np.int64(0))
    flat_ids = op.add(Reshape, ids, (-1,))
    place = op.add(Add, op.add(Mul, row, width), op.add(Mod, places, width))
    chosen = op.add(Gather, flat_ids, place, 0)
    is_over = op.add(
        And,
        op.add(Equal, chosen, end),
        op.add(Equal, op.add(Gather, own_ids, row, 0), end),
    )
    all_over = op.add(ReduceAll, op.add(Or, is_over, op.add(Not, is_there)), (1,), keepdim=True)
    is_selected = op.add(And, is_there, op.add(Not, all_over))
    selected = op.add(Squeeze, op.add(NonZero, op.add(Reshape, is_selected, (-1,))), (0,))
    rows = op.add(Gather, op.add(Reshape, row, (-1,)), selected, 0)
    rows, order = op.add_all(TopK, rows, ragged.size(op, rows), axis=0, largest=False, sorted=True)
    selected = op.add(Gather, selected, order, 0)
    for output, values in (("selected_ids", chosen), ("selected_scores", best_scores)):
        column = op.add(Gather, op.add(Reshape, values, (-1,)), selected, 0)
        op.make(Unsqueeze, column, (1,), output=output)
    if op.count("parent_idx"):
        op.define(op.as_type(rows, ElementType.INT32), "parent_idx")
    last = op.add(Slice, offsets, (0,), (-1,), (_TO_END,))
    all_rows = ragged.numbers_up_to(op, op.add(Reshape, last, ()))
    is_own = op.add(Equal, rows, op.add(Unsqueeze, all_rows, (1,)))
    counts = op.add(ReduceSum, op.as_type(is_own, ElementType.INT64), (1,), keepdim=False)
    for output in ("selected_ids", "selected_scores"):
        op.set_levels([offsets, ragged.offsets_of(op, counts)], output)
