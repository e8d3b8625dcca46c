"""Decoding of sequence outputs: beam search, CTC alignment and Viterbi paths."""

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

_END = 2**31 - 1
_BACKWARDS = (-1,), (-(2**31),), (-1,)
"""The start, end and step of a slice that reverses an axis."""


@imports("gather_tree")
def gather_tree(op: Context) -> None:
    """Import `gather_tree`: ids [T, N, beams] of beams, traced from the last id to its parents."""
    ids, parents = op.input("Ids"), op.input("Parents")
    dtype = parents.type.element_type
    beams = op.as_type(ragged.arange(op, ragged.size(op, ids, 2)), dtype)
    sizes = [op.add(Reshape, ragged.size(op, ids, axis), (1,)) for axis in (1, 2)]
    initial = op.add(Expand, beams, op.add(Concat, parts=sizes, axis=0))

    def step(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        gathered = [b.add(GatherElements, part, state, 1) for part in slices]
        return gathered[1], gathered[0]

    _, beam_ids = op.scan(initial, [ids, parents], step, reverse=True)
    op.define(beam_ids)


@imports("crf_decoding")
def crf_decoding(op: Context) -> None:
    """Import `crf_decoding`: the most likely path of tags for emissions and transitions (Viterbi).

    The first two rows of the transitions are the scores of start and end.
    """
    emission, weights = op.input("Emission"), op.input("Transition")
    length_input = op.optional_input("Length")
    if length_input is None:
        offsets = op.levels("Emission")[-1]
        lengths = ragged.lengths(op, offsets)
        zero = op.constant(np.zeros((), emission.type.element_type.dtype), "zero")
        emission, _ = ragged.pad_sequences(op, emission, offsets, zero)
    else:
        lengths = op.as_type(op.add(Reshape, length_input, (-1,)), ElementType.INT64)
    tags = _best_path(op, emission, weights, lengths)
    if length_input is None:
        tags = op.add(Unsqueeze, ragged.unpad_sequences(op, tags, lengths), (1,))
    if (label := op.optional_input("Label")) is not None:
        label = op.add(Reshape, op.as_type(label, ElementType.INT64), op.shape(tags))
        is_correct = op.add(Equal, label, tags)
        if length_input is not None:
            # Tags after the end of a sequence are never correct.
            positions = ragged.arange(op, ragged.size(op, tags, 1))
            is_inside = op.add(Less, positions, op.add(Unsqueeze, lengths, (1,)))
            is_correct = op.add(And, is_correct, is_inside)
        tags = op.as_type(is_correct, ElementType.INT64)
    op.define(tags, "ViterbiPath")


def _best_path(op: Context, emission: Operand, weights: Operand, lengths: Operand) -> Operand:
    """Return the tags [N, T], 0 after the end of a sequence, for emissions [N, T, tags]."""
    positions = ragged.arange(op, ragged.size(op, emission, 1))
    is_inside = op.add(Less, op.add(Unsqueeze, positions, (1,)), lengths)
    steps = op.add(Transpose, emission, (1, 0, 2))
    start_weights, end_weights = (
        op.add(Squeeze, op.add(Slice, weights, (0,), (row,), (row + 1,)), (0,)) for row in (0, 1)
    )
    moves = op.add(Unsqueeze, op.add(Slice, weights, (0,), (2,), (_END,)), (0,))
    first = op.add(Squeeze, op.add(Slice, steps, (0,), (0,), (1,)), (0,))
    later = [op.add(Slice, part, (0,), (1,), (_END,)) for part in (steps, is_inside)]
    # A scan's body cannot capture operands: the transitions are scanned, repeated for each step.
    count = op.add(Reshape, op.add(Sub, ragged.size(op, emission, 1), np.int64(1)), (1,))
    tag_counts = [ragged.size(op, weights, 1)] * 2
    sizes = [count, *(op.add(Reshape, size, (1,)) for size in tag_counts)]
    transitions = op.add(Expand, moves, op.add(Concat, parts=sizes, axis=0))

    def forward(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        emitted, inside, transition = slices
        score = b.add(Add, b.add(Unsqueeze, state, (2,)), transition)
        best = b.add(Add, b.add(ReduceMax, score, (1,), keepdim=False), emitted)
        last = b.add(ArgMax, score, 1, keepdim=False, dtype=ElementType.INT64)
        return b.add(Where, b.add(Unsqueeze, inside, (1,)), best, state), last

    score, backpointers = op.scan(op.add(Add, first, start_weights), [*later, transitions], forward)
    final = op.add(Add, score, end_weights)
    tag = op.add(ArgMax, final, 1, keepdim=True, dtype=ElementType.INT64)

    def back(b: Builder, state: Operand, slices: Sequence[Operand]) -> Sequence[Operand]:
        backpointer, inside = slices
        is_active = b.add(Unsqueeze, inside, (1,))
        previous = b.add(Where, is_active, b.add(GatherElements, backpointer, state, 1), state)
        return previous, b.add(Where, is_active, state, np.int64(0))

    start, path = op.scan(tag, [backpointers, later[1]], back, reverse=True)
    all_tags = op.add(Concat, parts=[op.add(Unsqueeze, start, (0,)), path], axis=0)
    tags = op.add(Transpose, op.add(Squeeze, all_tags, (2,)), (1, 0))
    return op.add(Where, op.add(Transpose, is_inside, (1, 0)), tags, np.int64(0))


@imports("ctc_align")
def ctc_align(op: Context) -> None:
    """Ids without blanks and, with `merge_repeated`, without repetitions."""
    if op.inputs("InputLength"):
        _align_rows(op)
    else:
        _align_sequences(op)


def _is_kept(op: Context, ids: Operand, previous: Operand) -> Operand:
    """Return whether each id is kept, given the previous id."""
    dtype = ids.type.element_type.dtype.type
    is_kept = op.add(NotEqual, ids, dtype(op.integer("blank", 0)))
    if op.flag("merge_repeated", True):
        is_kept = op.add(And, is_kept, op.add(NotEqual, ids, previous))
    return is_kept


def _align_rows(op: Context) -> None:
    """Align padded sequences [N, T] with their lengths."""
    ids, dtype = op.input("Input"), op.input("Input").type.element_type.dtype.type
    no_id = op.add(Reshape, ragged.size(op, ids), (1,))
    no_id = op.add(Concat, parts=[no_id, op.constant(np.ones(1, np.int64), "one")], axis=0)
    no_id = op.add(Expand, np.full((1, 1), -1, dtype), no_id)
    previous = op.add(Concat, parts=[no_id, op.add(Slice, ids, (1,), (0,), (-1,))], axis=1)
    width = ragged.size(op, ids, 1)
    positions = ragged.arange(op, width)
    lengths = op.as_type(op.add(Reshape, op.input("InputLength"), (-1, 1)), ElementType.INT64)
    is_kept = op.add(And, op.add(Less, positions, lengths), _is_kept(op, ids, previous))
    key = op.add(Where, is_kept, positions, op.add(Add, positions, width))
    _, order = op.add_all(TopK, key, width, axis=1, largest=False, sorted=True)
    kept_counts = op.as_type(is_kept, ElementType.INT64)
    count = op.add(ReduceSum, kept_counts, (1,), keepdim=True)
    value = dtype(op.integer("padding_value", 0))
    aligned = op.add(GatherElements, ids, order, 1)
    op.make(Where, op.add(Less, positions, count), aligned, value, output="Output")
    op.define(op.as_type(count, ids.type.element_type), "OutputLength")


def _align_sequences(op: Context) -> None:
    """Align sequences with LoD; the output is a single row of -1 if all ids are removed."""
    ids, offsets = op.add(Reshape, op.input("Input"), (-1,)), op.levels("Input")[0]
    dtype = ids.type.element_type.dtype.type
    rows = ragged.arange(op, ragged.size(op, ids))
    sequence = ragged.row_sequences(op, offsets, rows)
    is_first = op.add(Equal, op.add(Gather, ragged.starts(op, offsets), sequence, 0), rows)
    predecessor = op.add(
        Gather, ids, op.add(Sub, rows, op.as_type(op.add(Not, is_first), rows.type.element_type)), 0
    )
    previous = op.add(Where, is_first, dtype(-1), predecessor)
    kept_rows = op.add(Squeeze, op.add(NonZero, _is_kept(op, ids, previous)), (0,))
    low, high = (
        op.add(Unsqueeze, part, (1,))
        for part in (ragged.starts(op, offsets), ragged.ends(op, offsets))
    )
    is_in_sequence = op.as_type(ragged.in_range(op, kept_rows, low, high), ElementType.INT64)
    counts = op.add(ReduceSum, is_in_sequence, (1,), keepdim=False)
    is_empty = op.add(Equal, ragged.size(op, kept_rows), np.int64(0))
    filler_count = op.add(Reshape, op.as_type(is_empty, ElementType.INT64), (1,))
    filler = op.add(Expand, np.array([-1], dtype), filler_count)
    aligned = op.add(Concat, parts=[op.add(Gather, ids, kept_rows, 0), filler], axis=0)
    op.make(Unsqueeze, aligned, (1,), output="Output")
    op.set_levels([ragged.offsets_from_lengths(op, counts)], "Output")


@imports("beam_search")
def beam_search(op: Context) -> None:
    """Import one step of a beam search: the best ids of each source, in the order of beams.

    A source is a sequence of rows, one for each beam. A beam that has ended continues with the end
    id. A source whose beams have all ended is removed. For equal scores, later beams win.
    """
    scores, end = op.input("scores"), np.int64(op.integer("end_id"))
    offsets = _source_offsets(op)
    count = ragged.size(op, scores)
    rows = op.add(Reshape, count, (1,))
    beam_ids = op.add(Slice, op.add(Reshape, op.input("pre_ids"), (-1,)), (0,), (0,), rows)
    beam_scores = op.add(Slice, op.add(Reshape, op.input("pre_scores"), (-1,)), (0,), (0,), rows)
    has_ended = op.add(Unsqueeze, op.add(Equal, beam_ids, end), (1,))
    previous = op.add(Unsqueeze, beam_scores, (1,))
    if not op.flag("is_accumulated", True):
        scores = op.add(Add, previous, op.add(Log, scores))
    width = ragged.size(op, scores, 1)
    columns = ragged.arange(op, width)
    ids = op.optional_input("ids")
    ids = columns if ids is None else ids
    # A beam that has ended has one candidate: the end id with the beam's previous score.
    dtype = scores.type.element_type.dtype.type
    ended_scores = op.add(Where, op.add(Equal, columns, np.int64(0)), previous, dtype(-np.inf))
    scores = op.add(Where, has_ended, ended_scores, scores)
    ids = op.add(Where, has_ended, end, ids)
    _make_best(op, scores, ids, beam_ids, offsets, end)


def _source_offsets(op: Context) -> Operand:
    """Return the offsets of the sources in rows instead of in sequences of the next level."""
    levels, level = op.levels("scores"), op.integer("level", 0)
    offsets = levels[level]
    for finer in levels[level + 1 :]:
        offsets = op.add(Gather, finer, offsets, 0)
    return offsets


def _make_best(
    op: Context, scores: Operand, ids: Operand, beam_ids: Operand, offsets: Operand, end: np.int64
) -> None:
    """Set the outputs to the best candidates of each source, in the order of their rows."""
    width, dtype = ragged.size(op, scores, 1), scores.type.element_type.dtype.type
    lowest = op.constant(np.array(-np.inf, dtype), "least")
    padded, _ = ragged.pad_sequences(op, scores, offsets, lowest)
    beam_count = ragged.size(op, padded, 1)
    # Later beams first.
    reversed_scores = op.add(Slice, padded, (1,), *_BACKWARDS)
    flat = op.add(Reshape, reversed_scores, (0, -1))
    count = op.add(Min, ragged.size(op, flat, 1), np.int64(op.integer("beam_size")))
    best_scores, candidates = op.add_all(TopK, flat, count, axis=1, largest=True, sorted=True)
    beam = op.add(Sub, op.add(Sub, beam_count, np.int64(1)), op.add(FloorDiv, candidates, width))
    row = op.add(Add, op.add(Unsqueeze, ragged.starts(op, offsets), (1,)), beam)
    is_valid = op.add(Greater, best_scores, dtype(-np.inf))
    row = op.add(Where, is_valid, row, np.int64(0))
    flat_ids = op.add(Reshape, ids, (-1,))
    index = op.add(Add, op.add(Mul, row, width), op.add(Mod, candidates, width))
    chosen_ids = op.add(Gather, flat_ids, index, 0)
    has_ended = op.add(
        And, op.add(Equal, chosen_ids, end), op.add(Equal, op.add(Gather, beam_ids, row, 0), end)
    )
    all_ended = op.add(ReduceAll, op.add(Or, has_ended, op.add(Not, is_valid)), (1,), keepdim=True)
    is_selected = op.add(And, is_valid, op.add(Not, all_ended))
    selected = op.add(Squeeze, op.add(NonZero, op.add(Reshape, is_selected, (-1,))), (0,))
    rows = op.add(Gather, op.add(Reshape, row, (-1,)), selected, 0)
    rows, order = op.add_all(TopK, rows, ragged.size(op, rows), axis=0, largest=False, sorted=True)
    selected = op.add(Gather, selected, order, 0)
    for output, values in (("selected_ids", chosen_ids), ("selected_scores", best_scores)):
        column = op.add(Gather, op.add(Reshape, values, (-1,)), selected, 0)
        op.make(Unsqueeze, column, (1,), output=output)
    if op.count("parent_idx"):
        op.define(op.as_type(rows, ElementType.INT32), "parent_idx")
    last = op.add(Slice, offsets, (0,), (-1,), (_END,))
    all_rows = ragged.arange(op, op.add(Reshape, last, ()))
    is_from_row = op.add(Equal, rows, op.add(Unsqueeze, all_rows, (1,)))
    counts = op.add(ReduceSum, op.as_type(is_from_row, ElementType.INT64), (1,), keepdim=False)
    for output in ("selected_ids", "selected_scores"):
        op.set_levels([offsets, ragged.offsets_from_lengths(op, counts)], output)
