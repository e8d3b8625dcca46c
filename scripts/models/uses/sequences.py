"""Uses of the operators on tensors that hold sequences (LoD)."""

import numpy as np

from uses import (
    Attributes,
    fixed,
    integers,
    loose,
    normal,
    positive,
    ragged,
    real,
    saved,
    use,
    whole,
)

OFFSETS = (0, 2, 2, 5, 6)
OTHERS = (0, 1, 3, 3, 7)
ROWS = ragged(normal(6, 4), OFFSETS)
NAMES = ragged(whole(6, 1, low=0, high=3), OFFSETS)

use("sequence_concat", "two", {"X": [ROWS, ragged(normal(7, 4, seed=1), OTHERS)]})
use("sequence_concat", "three", {"X": [NAMES, NAMES, NAMES]})
for setting, start, length in (("around", -1, 3), ("behind", 0, 2), ("long before", -4, 3)):
    filters = saved(normal(4 * length, 3, seed=2))
    context: Attributes = {"contextStart": start, "contextLength": length, "contextStride": 1}
    use("sequence_conv", setting, {"X": ROWS, "Filter": filters}, **context)
TIMES = ragged(normal(8, 1), (0, 2, 2, 5, 8))
use("sequence_expand", "sequences", {"X": ROWS, "Y": TIMES}, ref_level=0)
use("sequence_expand", "rows", {"X": normal(4, 3), "Y": TIMES}, ref_level=-1)
TWO_LEVELS = ragged(normal(6, 1), (0, 1, 3, 3, 4), OFFSETS)
use("sequence_expand", "of two levels", {"X": ROWS, "Y": TWO_LEVELS}, ref_level=0)
use("sequence_expand_as", "rows", {"X": whole(4, 3), "Y": TIMES})
BOTH = "Out Length"
use(
    "sequence_pad",
    "as the longest",
    {"X": ROWS, "PadValue": fixed(real(0.5))},
    outputs=BOTH,
    padded_length=-1,
)
use(
    "sequence_pad",
    "longer, a row",
    {"X": ROWS, "PadValue": fixed(normal(4, seed=3))},
    outputs=BOTH,
    padded_length=5,
)
use("sequence_unpad", "rows", {"X": normal(3, 4, 2), "Length": integers(2, 0, 4, dtype="int64")})
use("sequence_unpad", "numbers", {"X": whole(3, 4), "Length": integers(1, 4, 2, dtype="int64")})
for kind in ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"):
    use("sequence_pool", kind.lower(), {"X": ROWS}, pooltype=kind, pad_value=-1.5)
use("sequence_pool", "of two levels", {"X": TWO_LEVELS}, pooltype="SUM")
use("sequence_reshape", "wider", {"X": ragged(normal(6, 2), (0, 2, 6))}, new_dim=4)
use("sequence_reshape", "narrower", {"X": ROWS}, new_dim=2)
use("sequence_reverse", "rows", {"X": ROWS})
use("sequence_softmax", "numbers", {"X": ragged(normal(6), OFFSETS)})
use("sequence_softmax", "rows of one", {"X": ragged(normal(6, 1), OFFSETS)})
use("lod_reset", "by an attribute", {"X": ROWS}, target_lod=[0, 1, 6])
use("lod_reset", "as another", {"X": ROWS, "Y": ragged(normal(6, 1), (0, 4, 6))})

WINDOWS: Attributes = {"kernels": [3, 2], "strides": [2, 1], "paddings": [1, 0, 0, 1]}
use("im2sequence", "windows", {"X": normal(2, 3, 5, 4)}, **WINDOWS)
SIZES = np.array([[9, 4], [5, 3]], np.float32)
use(
    "im2sequence",
    "real sizes",
    {"X": normal(2, 3, 5, 4), "Y": SIZES},
    **WINDOWS,
    out_stride=[2, 1],
)
IMAGES = np.array([[60, 80, 2], [30, 40, 1.5], [25, 21, 1]], np.float32)
BOXES = 30 * positive(6, 4)
use(
    "box_clip",
    "boxes",
    {"Input": ragged(BOXES, (0, 2, 5, 6)), "ImInfo": ragged(IMAGES, (0, 1, 2, 3))},
)
use(
    "roi_align",
    "regions in sequences",
    {
        "X": normal(2, 4, 8, 10),
        "ROIs": ragged(np.sort(10 * positive(5, 2, 2), 1).reshape(5, 4), (0, 2, 5)),
    },
    pooled_height=2,
    pooled_width=2,
    sampling_ratio=2,
)

PROBABILITIES = normal(7, 5)
MOVES = saved(normal(7, 5, seed=1))
EMISSION = ragged(PROBABILITIES, (0, 3, 4, 7))
use("crf_decoding", "sequences", {"Emission": EMISSION, "Transition": MOVES})
LABEL = ragged(whole(7, 1, low=0, high=5), (0, 3, 4, 7))
use("crf_decoding", "labels", {"Emission": EMISSION, "Transition": MOVES, "Label": LABEL})
use(
    "crf_decoding",
    "lengths",
    {
        "Emission": normal(3, 4, 5),
        "Transition": MOVES,
        "Length": integers(4, 1, 3, dtype="int64").reshape(3, 1),
    },
)
use(
    "crf_decoding",
    "lengths and labels",
    {
        "Emission": normal(3, 4, 5),
        "Transition": MOVES,
        "Label": np.zeros((3, 4), np.int64),
        "Length": integers(2, 1, 3, dtype="int64").reshape(3, 1),
    },
)
IDS = np.array([0, 1, 1, 0, 1, 2, 2, 0, 0, 3], np.int64)
use("ctc_align", "sequences", {"Input": ragged(IDS[:, None], (0, 4, 5, 10))}, blank=0)
use(
    "ctc_align",
    "repetitions kept",
    {"Input": ragged(IDS[:, None], (0, 4, 5, 10))},
    blank=1,
    merge_repeated=False,
)
use("ctc_align", "nothing left", {"Input": ragged(np.zeros((3, 1), np.int64), (0, 3))}, blank=0)
ROWS_OF_IDS = {"Input": IDS.reshape(2, 5), "InputLength": integers(5, 4, dtype="int64")[:, None]}
use("ctc_align", "rows", ROWS_OF_IDS, outputs="Output OutputLength", blank=0, padding_value=9)
use("gather_tree", "beams", {"Ids": whole(4, 2, 3), "Parents": whole(4, 2, 3, low=0, high=3)})
BEAMS = ((0, 2, 4), (0, 1, 2, 3, 4))
SEARCH = {
    "pre_ids": loose(np.array([[3], [1], [4], [2]], np.int64), 1),
    "pre_scores": loose(normal(4, 1), 1),
    "ids": ragged(whole(4, 3, low=0, high=6), *BEAMS),
    "scores": ragged(positive(4, 3), *BEAMS),
}
SELECTED = "selected_ids selected_scores parent_idx"
use("beam_search", "added up", SEARCH, outputs=SELECTED, level=0, beam_size=2, end_id=1)
use(
    "beam_search",
    "probabilities",
    SEARCH,
    outputs=SELECTED,
    level=0,
    beam_size=3,
    end_id=1,
    is_accumulated=False,
)
ENDED = SEARCH | {
    "pre_ids": loose(np.array([[1], [1], [4], [1]], np.int64), 1),
    "ids": ragged(np.ones((4, 3), np.int64), *BEAMS),
}
use("beam_search", "a source has ended", ENDED, outputs=SELECTED, level=0, beam_size=2, end_id=1)
