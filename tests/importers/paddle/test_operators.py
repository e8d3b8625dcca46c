"""All operators that Paddle Lite converts for NNAdapter, and more, compared with Paddle's outputs.

Each has a folder of models saved by Paddle, one for each setting of attributes or inputs
(`scripts/models/uses`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import outputs

from crosschip.importers import paddle
from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.context import TABLE
from crosschip.importers.paddle.dialect import COUNTERPARTS

_ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "pow", "floordiv")
FUSED = tuple(f"fusion_elementwise_{name}_activation" for name in _ARITHMETIC)
BY_HAND = ("calib", "pad2d", *FUSED)
"""Paddle Lite's operators without a kernel in Paddle 2.6; `test_handwritten` has models of them."""

# fmt: off
OPERATORS = (
    *(f"elementwise_{name}" for name in _ARITHMETIC),
    "abs", "arg_max", "arg_min", "assign", "batch_norm", "bilinear_interp", "bilinear_interp_v2",
    "bmm", "cast", "clip", "concat", "conv2d", "conv2d_transpose", "cos", "cumsum",
    "deformable_conv", "depthwise_conv2d", "dropout", "equal", "exp", "expand", "expand_v2", "fc",
    "fill_any_like", "fill_constant", "fill_constant_batch_size_like", "fill_zeros_like",
    "flatten", "flatten2", "flatten_contiguous_range", "floor", "gather", "gelu", "greater_equal",
    "greater_than", "grid_sample", "group_norm", "hard_sigmoid", "hard_swish", "instance_norm",
    "layer_norm", "leaky_relu", "less_equal", "less_than", "log", "log_softmax", "logical_and",
    "logical_not", "lookup_table", "lookup_table_v2", "lrn", "matmul", "matmul_v2", "meshgrid",
    "mul", "multiclass_nms3", "nearest_interp", "nearest_interp_v2", "norm", "not_equal", "pad3d",
    "pool2d", "pow", "prelu", "prior_box", "range", "reduce_max", "reduce_mean", "reduce_sum",
    "relu", "relu6", "reshape", "reshape2", "roi_align", "roll", "rsqrt", "scale", "shape",
    "shuffle_channel", "sigmoid", "silu", "sin", "slice", "softmax", "softplus", "split", "sqrt",
    "square", "squeeze", "squeeze2", "stack", "strided_slice", "sum", "swish", "tanh", "tile",
    "top_k", "top_k_v2", "transpose", "transpose2", "unsqueeze", "unsqueeze2", "unstack", "where",
    "yolo_box",
)
FURTHER = (
    "acos", "acosh", "addmm", "affine_channel", "affine_grid", "allclose", "anchor_generator",
    "argsort", "asin", "asinh", "assign_value", "atan", "atan2", "atanh", "beam_search",
    "bicubic_interp_v2", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "box_clip",
    "box_coder", "brelu", "ceil", "celu", "channel_shuffle", "collect_fpn_proposals", "conv3d",
    "cosh", "crf_decoding", "crop", "crop_tensor", "cross", "ctc_align", "cumprod", "data_norm",
    "density_prior_box", "depthwise_conv2d_transpose", "determinant", "diag_v2", "diagonal",
    "dist", "distribute_fpn_proposals", "dot", "einsum", "elementwise_fmax", "elementwise_fmin",
    "elementwise_heaviside", "elementwise_mod", "elu", "empty", "equal_all", "erf",
    "expand_as_v2", "expm1", "eye", "flip", "frobenius_norm", "gather_nd", "gather_tree",
    "generate_proposals", "generate_proposals_v2", "grid_sampler", "gru_unit", "hard_shrink",
    "im2sequence", "increment", "index_add", "index_put", "index_sample", "index_select",
    "inverse", "is_empty", "isclose", "isfinite_v2", "isinf_v2", "isnan_v2", "kron", "kthvalue",
    "label_smooth", "lerp", "linear_interp_v2", "linspace", "lod_reset", "log10", "log1p",
    "log2", "logical_or", "logical_xor", "logit", "logsigmoid", "logsumexp",
    "lookup_table_dequant", "lstm", "masked_select", "matrix_nms", "max_pool2d_with_index",
    "max_pool3d_with_index", "maxout", "mean", "merge_lod_tensor", "mish", "multiclass_nms",
    "multiclass_nms2", "mv", "nms", "one_hot_v2", "p_norm", "pad", "partial_concat",
    "partial_sum", "pixel_shuffle", "pixel_unshuffle", "polygon_box_transform", "pool3d",
    "put_along_axis", "reciprocal", "reduce_all", "reduce_amax", "reduce_amin", "reduce_any",
    "reduce_min", "reduce_prod", "repeat_interleave", "reverse", "rnn", "round", "scatter",
    "scatter_nd_add", "searchsorted", "select_input", "selu", "sequence_concat",
    "sequence_conv", "sequence_expand", "sequence_expand_as", "sequence_mask", "sequence_pad",
    "sequence_pool", "sequence_reshape", "sequence_reverse", "sequence_softmax",
    "sequence_unpad", "set_value", "share_data", "sign", "sinh", "size",
    "softmax_with_cross_entropy", "softshrink", "softsign", "split_lod_tensor",
    "squared_l2_norm", "stanh", "take_along_axis", "tan", "tanh_shrink", "temporal_shift",
    "thresholded_relu", "trace", "tril_indices", "tril_triu", "trilinear_interp_v2",
    "triu_indices", "trunc", "unbind", "unfold", "unique", "unique_with_counts", "where_index",
)
OLDER = (
    "beam_search", "bilinear_interp", "box_clip", "crop", "data_norm", "density_prior_box",
    "expand", "fc", "fill_zeros_like", "flatten", "flatten2", "generate_proposals",
    "grid_sample", "lod_reset", "lstm", "merge_lod_tensor", "multiclass_nms", "multiclass_nms2",
    "nearest_interp", "norm", "polygon_box_transform", "select_input", "sequence_concat",
    "sequence_conv", "sequence_expand", "sequence_expand_as", "sequence_pad", "sequence_pool",
    "sequence_reshape", "sequence_reverse", "sequence_softmax", "sequence_unpad",
    "split_lod_tensor", "squeeze", "top_k", "transpose", "unique_with_counts", "unsqueeze",
)
# fmt: on
"""Operators that Paddle 3 has no more, or cannot write, or that are on sequences (LoD)."""

# Paddle 2 rounds to float16 toward zero.
TOLERANCE = {np.dtype(np.float16): 1e-3}


def settings(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    """Return the models in a folder, by setting."""
    for path in sorted(folder.glob(f"*{suffix}")):
        yield path.stem, path


def check(operator: str, setting: str, path: Path) -> None:
    """Compare the outputs of an imported model with Paddle's."""
    oracle = np.load(path.with_suffix(".npz"))
    inputs = {name.removeprefix("input:"): oracle[name] for name in oracle if "input:" in name}
    count = sum(name.startswith("output:") for name in oracle)
    model = paddle.load(path)
    result = dict(zip(model.outputs, outputs(model, inputs), strict=True))
    # The offsets of sequences that are made come last.
    names = list(result)[:count]
    assert names, setting
    for index, name in enumerate(names):
        one, expected = result.pop(name), oracle[f"output:{index}"]
        assert one.dtype == expected.dtype, setting
        tolerance = TOLERANCE.get(one.dtype, 1e-5)
        np.testing.assert_allclose(one, expected, tolerance, 2e-6, err_msg=setting, strict=True)
    for name, offsets in result.items():
        variable, _, level = name.rpartition(".lod")
        expected = oracle[f"lod:{names.index(variable)}:{level}"]
        np.testing.assert_array_equal(offsets, expected, err_msg=setting, strict=True)


@pytest.mark.parametrize("operator", [*OPERATORS, *FURTHER])
def test_computes_what_paddle_2_does(models: Path, operator: str) -> None:
    result = list(settings(models / "operators" / "pdmodel" / operator, ".pdmodel"))
    assert len(result) >= (2 if operator in OPERATORS else 1)
    for setting, path in result:
        check(operator, setting, path)


@pytest.mark.parametrize("operator", sorted({*OPERATORS, *FURTHER} - {*OLDER}))
def test_computes_what_paddle_3_does(models: Path, operator: str) -> None:
    result = list(settings(models / "operators" / "json" / operator, ".json"))
    assert len(result) >= (2 if operator in OPERATORS else 1)
    for setting, path in result:
        check(operator, setting, path)


def test_the_list_is_complete(models: Path) -> None:
    assert len({*OPERATORS, *BY_HAND}) == 123  # that Paddle Lite converts
    folders = {path.name for path in (models / "operators" / "pdmodel").iterdir()}
    assert folders == {*OPERATORS, *FURTHER}


def test_paddle_3_does_not_write_the_older_ones(models: Path) -> None:
    for operator in OLDER:
        assert not list(settings(models / "operators" / "json" / operator, ".json"))


def test_each_operator_of_the_dialect_is_in_a_model(models: Path) -> None:
    covered = {
        operator["#"].replace("1.", "pd_op.")
        for folder in ("operators", "control")
        for path in (models / folder / "json").glob("*/*.json")
        for operator in json.loads(path.read_text())["program"]["regions"][0]["blocks"][0]["ops"]
    }
    # Only Paddle 3's own functions make these; `test_computed`, `test_paddle3` and, of what
    # quantizes, `test_quantization` have them.
    missing = {name.removeprefix("pd_op.") for name in set(COUNTERPARTS) - covered}
    assert {name for name in missing if "quantize" not in name} == {
        *("assign_value_", "shape64", "masked_fill", "swiglu"),
        *("create_array", "array_length", "array_read", "array_to_tensor", "array_write_"),
    }
    for counterpart in COUNTERPARTS.values():
        assert callable(TABLE[counterpart.type])
