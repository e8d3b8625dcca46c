"""Every operator that Paddle Lite converts for NNAdapter, and more, against Paddle's own outputs.

Each has a folder of models, a setting of its attributes or inputs each, which Paddle itself wrote
(`scripts/models/uses`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.running import outputs

from crosschip.importers import paddle
from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.dialect import COUNTERPARTS
from crosschip.importers.paddle.table import TABLE

_ARITHMETIC = ("add", "sub", "mul", "div", "max", "min", "pow", "floordiv")
FUSED = tuple(f"fusion_elementwise_{name}_activation" for name in _ARITHMETIC)
BY_HAND = ("calib", "pad2d", *FUSED)
"""The operators that Paddle 2.6 has no kernel for; `test_handwritten` has models of them."""

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
    "acos", "acosh", "affine_channel", "argsort", "asin", "asinh", "assign_value", "atan", "atanh",
    "bicubic_interp_v2", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "box_coder",
    "ceil", "celu", "cosh", "crop", "crop_tensor", "depthwise_conv2d_transpose", "determinant",
    "elementwise_mod", "elu", "erf", "expand_as_v2", "flip", "gather_nd", "grid_sampler",
    "hard_shrink", "increment", "index_select", "is_empty", "isinf_v2", "isnan_v2", "linspace",
    "lod_reset", "logical_or", "logical_xor", "logsumexp", "max_pool2d_with_index", "mean", "mish",
    "one_hot_v2", "p_norm", "pad", "pixel_shuffle", "reciprocal", "reduce_all", "reduce_any",
    "reduce_min", "reduce_prod", "reverse", "round", "scatter", "scatter_nd_add", "selu",
    "sequence_mask", "set_value", "share_data", "sign", "sinh", "softshrink", "softsign",
    "take_along_axis", "tan", "thresholded_relu", "tril_triu", "unbind", "unique",
    "unique_with_counts", "where_index",
)
OLDER = (
    "bilinear_interp", "crop", "expand", "fc", "fill_zeros_like", "flatten", "flatten2",
    "grid_sample", "lod_reset", "nearest_interp", "norm", "squeeze", "top_k", "transpose",
    "unique_with_counts", "unsqueeze",
)
# fmt: on
"""Operators that Paddle 3 has no more, or cannot write."""

# Paddle 2 rounds to float16 toward zero.
TOLERANCE = {np.dtype(np.float16): 1e-3}


def settings(folder: Path, suffix: str) -> Iterator[tuple[str, Path]]:
    """The models in a folder, by their setting."""
    for path in sorted(folder.glob(f"*{suffix}")):
        yield path.stem, path


def check(operator: str, setting: str, path: Path) -> None:
    """Compare what an imported model computes with what Paddle does."""
    oracle = np.load(path.with_suffix(".npz"))
    inputs = {name.removeprefix("input:"): oracle[name] for name in oracle if "input:" in name}
    found = outputs(paddle.load(path), inputs)
    assert len(found) == len(oracle) - len(inputs) > 0, setting
    for index, one in enumerate(found):
        expected = oracle[f"output:{index}"]
        assert one.dtype == expected.dtype, setting
        tolerance = TOLERANCE.get(one.dtype, 1e-5)
        np.testing.assert_allclose(one, expected, tolerance, 2e-6, err_msg=setting, strict=True)


@pytest.mark.parametrize("operator", [*OPERATORS, *FURTHER])
def test_computes_what_paddle_2_does(models: Path, operator: str) -> None:
    found = list(settings(models / "operators" / "pdmodel" / operator, ".pdmodel"))
    assert len(found) >= (2 if operator in OPERATORS else 1)
    for setting, path in found:
        check(operator, setting, path)


@pytest.mark.parametrize("operator", sorted({*OPERATORS, *FURTHER} - {*OLDER}))
def test_computes_what_paddle_3_does(models: Path, operator: str) -> None:
    found = list(settings(models / "operators" / "json" / operator, ".json"))
    assert len(found) >= (2 if operator in OPERATORS else 1)
    for setting, path in found:
        check(operator, setting, path)


def test_the_list_is_complete(models: Path) -> None:
    assert len({*OPERATORS, *BY_HAND}) == 123
    folders = {path.name for path in (models / "operators" / "pdmodel").iterdir()}
    assert folders == {*OPERATORS, *FURTHER}


def test_paddle_3_does_not_write_the_older_ones(models: Path) -> None:
    for operator in OLDER:
        assert not list(settings(models / "operators" / "json" / operator, ".json"))


def test_each_operator_of_the_dialect_is_in_a_model(models: Path) -> None:
    written = {
        operator["#"].replace("1.", "pd_op.")
        for folder in ("operators", "control")
        for path in (models / folder / "json").glob("*/*.json")
        for operator in json.loads(path.read_text())["program"]["regions"][0]["blocks"][0]["ops"]
    }
    # Only Paddle 3's own functions make these; `test_computed` has them.
    assert set(COUNTERPARTS) - written == {"pd_op.assign_value_", "pd_op.shape64"}
    for counterpart in COUNTERPARTS.values():
        assert callable(TABLE[counterpart.type])
