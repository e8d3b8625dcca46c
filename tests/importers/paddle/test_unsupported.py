"""Error messages for operators and variants that are not supported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.importers.paddle.helpers import import_error, modified_model, small, small_3
from tests.importers.paddle.writers import Floats

from crosschip.importers import load
from crosschip.ir import ModelFileError, UnsupportedError


def test_all_unknown_operators_are_listed_with_counts(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    for name in ("warpctc", "tree_conv", "warpctc"):
        of_2.operator(name, {"X": "x"}, {"Out": "z"})
        of_3.operator(f"1.{name}", [1])
    with pytest.raises(UnsupportedError, match=r"2 of .*: tree_conv \(1\), warpctc \(2\)"):
        load(of_2.save(tmp_path))
    with pytest.raises(UnsupportedError, match=r"pd_op\.tree_conv \(1\), pd_op\.warpctc \(2\)"):
        load(of_3.save(tmp_path))


REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("batch_norm", "default", {"trainable_statistics": True}, "trainable_statistics"),
    ("cast", "to_int32", {"out_dtype": 23}, "element type 23"),
    ("conv2d", "default", {"act_type": "gelu"}, "act_type 'gelu'"),
    ("conv2d", "default", {"data_format": "CHWN"}, "data_format: 'CHWN'"),
    (
        "conv2d",
        "default",
        {"enable_int8": True},
        "computes on int8, but no attribute holds a scale",
    ),
    ("conv2d", "default", {"padding_algorithm": "HALF"}, "padding_algorithm: 'HALF'"),
    (
        "conv2d_transpose",
        "open_sizes",
        {"padding_algorithm": "SAME", "strides": [2, 2]},
        r"padding_algorithm 'SAME' with strides \[2, 2\]",
    ),
    ("dropout", "scaled_now", {"dropout_implementation": "often"}, "'often'"),
    ("elementwise_add", "axis_1", {"axis": 3}, "axis: 3 does not fit"),
    ("fc", "rank_2", {"activation_type": "gelu"}, "activation_type 'gelu'"),
    ("fill_constant_batch_size_like", "first_axis", {"input_dim_idx": 7}, "input_dim_idx 7"),
    ("flatten2", "axis_1", {"axis": 9}, "axis: 9"),
    ("grid_sampler", "nearest_zeros_aligned_True", {"mode": "bicubic"}, "mode: 'bicubic'"),
    ("group_norm", "2_groups", {"data_layout": "CNHW"}, "data_layout: 'CNHW'"),
    ("hard_swish", "rank_4", {"scale": 0.0}, "scale: is 0"),
    ("layer_norm", "last_axis", {"begin_norm_axis": 4}, "begin_norm_axis: 4"),
    ("matmul", "rank_2", {"head_number": 2}, "head_number 2"),
    ("nearest_interp", "size", {"scale": 1e30}, "scale: "),
    ("pad3d", "constant", {"mode": "mirror"}, "mode: 'mirror'"),
    ("pad3d", "constant", {"paddings": [1, 2]}, "paddings: must be 6"),
    ("pool2d", "avg_default", {"pooling_type": "lp"}, "pooling_type: 'lp'"),
    (
        "pool2d",
        "avg_open_sizes",
        {"exclusive": False, "paddings": [1, 0, 0, 0]},
        "exclusive False .*sizes of the image",
    ),
    ("pool2d", "max_open_sizes", {"adaptive": True}, "adaptive True: the sizes"),
    ("pool2d", "max_default", {"adaptive": True, "strides": [0, 1]}, "must be two sizes each"),
    ("argsort", "default", {"axis": 4}, "axis: 4 is not an axis"),
    ("crop", "attributes", {"shape": [2, 2]}, "must be 3 numbers each"),
    ("one_hot_v2", "float32", {"depth": -3}, "-3: is not how many numbers"),
    ("box_coder", "encoded", {"axis": 2}, "axis: 2 is not 0 or 1"),
    ("box_coder", "encoded", {"variance": Floats([0.5])}, "must be 4 numbers, not 1"),
    ("set_value", "part", {"steps": [1, -2]}, "only positive ones"),
    ("set_value", "part", {"ends": [2]}, "must be as many"),
    ("set_value", "part", {"axes": [0, 3]}, "axes: 3 is not an axis"),
    ("set_value", "part", {"none_axes": [1]}, "axes that are added to a part"),
    ("set_value", "part", {"decrease_axes": [1]}, "are not axes of size 1"),
    ("unique", "columns", {"axis": [0, 1]}, "only one is expressed"),
    ("prelu", "channel", {"mode": "row"}, "mode: 'row'"),
    ("scale", "int64", {"bias": float("inf")}, "scale and bias: inf is not a value of int64"),
    (
        "assign_value",
        "float32",
        {"shape": [-1, -2]},
        r"shape: \[-1, -2\] is not that of 2 values",
    ),
    (
        "pool2d",
        "avg_inclusive_four_pads",
        {"paddings": [0, 2**30, 0, 0]},
        "is too large an image",
    ),
    ("pool2d", "max_rounded_up_padded", {"ksize": [3, 3, 3]}, "kernel_shape: takes 2 values"),
    ("split", "num", {"num": 3}, "num: 4 cannot be split into 3"),
    ("split", "rest", {"axis": 4}, "axis: 4"),
    ("strided_slice", "end_computed", {"strides": [-1]}, r"strides \[-1\]: the ends must be"),
    ("transpose2", "rank_4", {"axis": [0, 1, 2, 7]}, r"axis: \[0, 1, 2, 7\]"),
    ("unsqueeze2", "one_axis", {"axes": [9]}, r"axes: \[9\]"),
]


@pytest.mark.parametrize(("operator", "setting", "attributes", "message"), REFUSED)
def test_a_use_that_cannot_be_expressed_is_named(
    models: Path,
    tmp_path: Path,
    operator: str,
    setting: str,
    attributes: dict[str, Any],
    message: str,
) -> None:
    path = modified_model(models, operator, setting, tmp_path, **attributes)
    assert re.search(rf"operator \d \({operator}\): .*{message}", import_error(path))


WRONG = [
    ("conv2d", "default", "strides", "often", "strides: 'often' is not an integer"),
    ("conv2d", "default", "groups", 1.5, "groups: 1.5 is not an integer"),
    ("conv2d", "default", "groups", [1, 2], "groups: must be one value, not 2"),
    ("conv2d", "default", "data_format", 3, "data_format: 3 is not a text"),
    ("conv2d", "default", "strides", [0, 1], "strides"),
    ("relu6", "default", "threshold", "x", "threshold: 'x' is not a number"),
    ("pool2d", "avg_default", "ceil_mode", 2, "ceil_mode: 2 is not true or false"),
    ("transpose2", "rank_4", "axis", [0, 0, 1, 2], "TRANSPOSE.perm"),
    ("yolo_box", "default", "anchors", [1, 2, 3], "anchors"),
]


@pytest.mark.parametrize(("operator", "setting", "attribute", "value", "message"), WRONG)
def test_an_attribute_of_another_type_is_named(
    models: Path,
    tmp_path: Path,
    operator: str,
    setting: str,
    attribute: str,
    value: object,
    message: str,
) -> None:
    path = modified_model(models, operator, setting, tmp_path, **{attribute: value})
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert f"({operator})" in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_attribute_is_named(tmp_path: Path) -> None:
    writer = small()
    writer.operator("transpose2", {"X": "x"}, {"Out": "z"})
    with pytest.raises(ModelFileError, match=r"operator 3 \(transpose2\): axis: is required"):
        load(writer.save(tmp_path))


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    writer = small()
    writer.operator("relu", {}, {"Out": "z"})
    with pytest.raises(ModelFileError, match=r"operator 3 \(relu\): X: is required"):
        load(writer.save(tmp_path))


def test_a_variable_that_nothing_makes_is_named(tmp_path: Path) -> None:
    writer = small()
    writer.operator("relu", {"X": "nowhere"}, {"Out": "z"})
    with pytest.raises(ModelFileError, match=r"operator 3 \(relu\): 'nowhere' is read"):
        load(writer.save(tmp_path))


def test_a_value_that_nothing_makes_is_named(tmp_path: Path) -> None:
    writer = small_3()
    writer.operator("1.relu", [99])
    with pytest.raises(ModelFileError, match="operator 4: value 99 is read"):
        load(writer.save(tmp_path))


def test_blocks_that_are_not_there_are_named(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    of_2.operator("while", {"X": "x"}, {"Out": "z"}).attrs.add(name=b"sub_block", type=8)
    with pytest.raises(ModelFileError, match="block 0 is not there, or is run by two operators"):
        load(of_2.save(tmp_path))
    of_3.operator("1.if", [2])
    of_3.operators[-1]["regions"] = []
    with pytest.raises(ModelFileError, match=r"operator 4 \(pd_op\.if\): runs 0 blocks, but must"):
        load(of_3.save(tmp_path))
