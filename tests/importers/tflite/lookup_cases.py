"""What is drawn for tables and for the suppression of boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.importers.tflite.single_operator import Case, Draw, Tensor, cases, const, options

from crosschip.ir import Array

LOOKUPS = (
    *("EMBEDDING_LOOKUP_SPARSE", "HASHTABLE_LOOKUP", "NON_MAX_SUPPRESSION_V4"),
    "NON_MAX_SUPPRESSION_V5",
)


@cases("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(draw: Draw, operator: str) -> Case:
    shape = (*draw.shape(0, 2, 3), draw.random.randint(1, 4))
    table = draw.shape(2, 3, 4)
    entries = sorted(
        draw.random.sample(list(np.ndindex(shape)), draw.random.randint(1, int(np.prod(shape))))
    )
    ids = Tensor(draw.integers((len(entries),), "int32", 0, table[0] - 1), "int32")
    inputs = [
        ids,
        Tensor(np.array(entries, np.int32), "int32"),
        const(shape),
        Tensor(draw.reals((len(entries),), 0.5, 2)),
        Tensor(draw.reals(table), constant=draw.chance(0.7)),
    ]
    chosen = options("EmbeddingLookupSparse", combiner=draw.random.randrange(3))
    return Case(operator, inputs, [Tensor()], chosen)


@cases("HASHTABLE_LOOKUP")
def hashtable_lookup(draw: Draw, operator: str) -> Case:
    count, dtype = draw.random.randint(1, 6), draw.random.choice(("float32", "int32", "int8"))
    keys = np.array(sorted(draw.random.sample(range(-9, 10), count)), np.int32)
    rows = draw.tensor((count, *draw.shape(0, 2)), dtype, constant=draw.chance(0.5))
    lookup = np.where(draw.numpy.random(5) < 0.6, draw.numpy.choice(keys, 5), 3).astype(np.int32)
    outputs = [Tensor(dtype=dtype), Tensor(dtype="uint8")]
    return Case(operator, [Tensor(lookup, "int32"), const(keys), rows], outputs)


@dataclass(frozen=True)
class _RankedCase(Case):
    """Boxes with scores that differ, also that of one more box."""

    def longer(self) -> list[Array]:
        corners, scores, *limits = self.arrays()
        moved = np.concatenate([corners, corners[:1] + np.float32(0.25)])
        return [moved, np.append(scores, scores.max() + np.float32(0.1)), *limits]


@cases("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(draw: Draw, operator: str) -> Case:
    count = draw.random.randint(1, 12)
    # LiteRT selects boxes without an area repeatedly; equal scores have no order.
    corners = draw.reals((count, 4), 0, 4)
    scores = draw.numpy.permutation(count).astype(np.float32) / 10 - 0.2
    constant = draw.chance(0.6)

    def number(value: float, dtype: str = "float32") -> Tensor:
        return Tensor(np.array(value, dtype), dtype, constant)

    inputs = [Tensor(corners), Tensor(scores), number(draw.random.randint(1, 8), "int32")]
    inputs += [number(draw.random.choice((0.0, 0.1, 0.3, 0.5, 1.0)))]
    inputs += [number(draw.random.choice((-9.0, 0.0, 0.25)))]
    outputs = [Tensor(dtype="int32"), Tensor(dtype="int32")]
    if operator == "NON_MAX_SUPPRESSION_V4":
        return _RankedCase(operator, inputs, outputs, options("NonMaxSuppressionV4"))
    inputs.append(number(draw.random.choice((0.0, 0.1, 0.5))))
    outputs = [Tensor(dtype="int32"), Tensor(), Tensor(dtype="int32")]
    return _RankedCase(operator, inputs, outputs, options("NonMaxSuppressionV5"))
