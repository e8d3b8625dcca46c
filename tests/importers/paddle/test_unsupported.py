"""Uses of operators that are refused, and what the messages say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.importers.paddle import cases_of_images, cases_of_shapes, cases_of_values
from tests.importers.paddle.case import Case
from tests.importers.paddle.small import refused, small, small_3

from crosschip.importers import load
from crosschip.ir import Error, ModelFileError, UnsupportedError

CASES = cases_of_values.CASES | cases_of_shapes.CASES | cases_of_images.CASES


def test_all_unknown_operators_are_listed_with_counts(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    for name in ("yolo_box", "while", "yolo_box"):
        of_2.operator(name, {"X": "x"}, {"Out": "z"})
        of_3.operator(f"1.{name}", [1])
    with pytest.raises(UnsupportedError, match=r"2 of .*: while \(1\), yolo_box \(2\)"):
        load(of_2.save(tmp_path))
    with pytest.raises(UnsupportedError, match=r"pd_op\.while \(1\), pd_op\.yolo_box \(2\)"):
        load(of_3.save(tmp_path))


REFUSED = [
    ("conv2d", {"data_format": "NHWC"}, "data_format 'NHWC'"),
    ("conv2d", {"padding_algorithm": "HALF"}, "padding_algorithm: 'HALF'"),
    ("conv2d_transpose", {"padding_algorithm": "SAME"}, "padding_algorithm 'SAME'"),
    ("average", {"exclusive": False, "paddings": [1, 0, 0, 0]}, "exclusive False"),
    ("average", {"pooling_type": "lp"}, "pooling_type: 'lp'"),
    ("maximum", {"adaptive": True}, "adaptive True"),
    ("bilinear", {"out_h": 1}, r"\(1, 13\)"),
    ("batch_norm", {"trainable_statistics": True, "use_global_stats": False}, "trainable_stat"),
    ("layer_norm", {"begin_norm_axis": 0}, "must be known"),
    ("layer_norm", {"begin_norm_axis": 4}, "begin_norm_axis: 4"),
    ("hard_swish", {"threshold": 5.0}, "threshold 5 with scale 6"),
    ("dropout, scaled now", {"dropout_implementation": "often"}, "'often'"),
    ("split in equal parts", {"num": 2}, "num: 9 cannot be split into 2"),
    ("split in sections", {"axis": 4}, "axis: 4"),
    ("unsqueeze2", {"axes": [4]}, r"axes: \[4\]"),
    ("cast", {"out_dtype": 23}, "element type 23"),
    ("elementwise_add", {"axis": 3}, "axis: 3 does not fit"),
]


@pytest.mark.parametrize(("name", "attributes", "message"), REFUSED)
def test_a_use_that_cannot_be_expressed_is_named(
    tmp_path: Path, name: str, attributes: dict[str, Any], message: str
) -> None:
    case = CASES[name]
    type, slots, output, written = case.paddle2
    changed = Case(
        case.inputs,
        case.parameters,
        (type, slots, output, {**written, **attributes}),
        case.paddle3,
        case.expected,
    )
    path = changed.write_paddle2(tmp_path)
    with pytest.raises(Error, match=rf"operator \d \({type}\): .*{message}"):
        load(path)
    assert refused(path)


WRONG = [
    ("conv2d", "strides", "often", "strides: 'often' is not an integer"),
    ("conv2d", "groups", 1.5, "groups: 1.5 is not an integer"),
    ("conv2d", "groups", [1, 2], "groups: must be one value, not 2"),
    ("conv2d", "data_format", 3, "data_format: 3 is not a text"),
    ("conv2d", "strides", [0, 1], "strides"),
    ("relu6", "threshold", "x", "threshold: 'x' is not a number"),
    ("average", "ceil_mode", 2, "ceil_mode: 2 is not true or false"),
    ("transpose2", "axis", [0, 0, 1, 2], "TRANSPOSE.perm"),
]


@pytest.mark.parametrize(("name", "attribute", "value", "message"), WRONG)
def test_an_attribute_of_another_type_is_named(
    tmp_path: Path, name: str, attribute: str, value: object, message: str
) -> None:
    case = CASES[name]
    type, slots, output, written = case.paddle2
    wrong = (type, slots, output, {**written, attribute: value})
    changed = Case(case.inputs, case.parameters, wrong, case.paddle3, case.expected)
    with pytest.raises(ModelFileError) as caught:
        load(changed.write_paddle2(tmp_path))
    assert f"({type})" in str(caught.value)
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


def test_control_flow_is_named(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    of_2.program.blocks.add()
    of_2.operator("while", {"X": "x"}, {"Out": "z"}).attrs.add(name=b"sub_block", type=8)
    with pytest.raises(UnsupportedError, match=r"2 blocks: control flow \(while\)"):
        load(of_2.save(tmp_path))
    of_3.operator("1.if", [2])
    of_3.operators[-1]["regions"] = []
    with pytest.raises(UnsupportedError, match=r"operator 4: pd_op\.if: control flow"):
        load(of_3.save(tmp_path))


def test_sequences_are_named(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    of_2.block.vars[0].type.lod_tensor.lod_level = 1
    with pytest.raises(UnsupportedError, match=r"'x' has sequences"):
        load(of_2.save(tmp_path))
    of_3.operators[1]["O"][0]["TT"]["D"][3] = [[0, 1]]
    with pytest.raises(UnsupportedError, match=r"'x' has sequences"):
        load(of_3.save(tmp_path))
