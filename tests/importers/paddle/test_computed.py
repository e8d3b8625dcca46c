"""Parameters in tensors, constant or computed, and further variants of operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import normal, outputs
from tests.importers.paddle.writers import (
    Double,
    Floats,
    IntArray,
    Longs,
    Paddle2Writer,
    Paddle3Writer,
    Place,
    tensor_type,
)

from crosschip.importers import load
from crosschip.ir import Array, ElementType, Model, ModelFileError, UnsupportedError

IMAGE = normal(1, 2, 4, 7, 9)


def image_through(model: Model) -> Array:
    """Return the only output for the image as `x`."""
    (result,) = outputs(model, {"x": IMAGE})
    return result


class Sizes2(Paddle2Writer):
    """A program of Paddle 2 with an image `x` whose sizes are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.input("x", "float32", [-1, 4, -1, -1])
        self.operator("shape", {"Input": "x"}, {"Out": "shape"})

    def size(self, axis: int) -> str:
        """The variable, of shape [1], with a size of the image."""
        attributes = {"axes": [0], "starts": [axis], "ends": [axis + 1], "decrease_axis": []}
        self.operator("slice", {"Input": "shape"}, {"Out": f"size_{axis}"}, attributes)
        return f"size_{axis}"

    def integer(self, value: int) -> str:
        """The variable, of shape [1], with a constant."""
        attributes = {"shape": [1], "dtype": 2, "value": float(value), "str_value": str(value)}
        self.operator("fill_constant", {}, {"Out": f"integer_{value}"}, attributes)
        return f"integer_{value}"

    def result(self, folder: Path) -> Array:
        """The value of the variable `y`."""
        self.output("y")
        return image_through(load(self.save(folder)))


class Sizes3(Paddle3Writer):
    """A program of Paddle 3 with an image whose sizes are computed."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.input("x", "float32", [-1, 4, -1, -1])
        self.shape = self.operator("1.shape64", [self.x], {}, [tensor_type("int64", [4])])

    def size(self, axis: int) -> int:
        """The value, a scalar, of a size of the image."""
        attributes = {
            "axes": Longs([0]),
            "infer_flags": Longs([1]),
            "decrease_axis": Longs([0]),
        }
        inputs = [self.shape, self.constant([axis]), self.constant([axis + 1])]
        return self.operator("1.slice", inputs, attributes, [tensor_type("int64", [])])

    def integer(self, value: int) -> int:
        """The value, a scalar, of a constant."""
        attributes = {
            "shape": IntArray(),
            "value": float(value),
            "dtype": ElementType.INT64,
            "place": Place([1, 0, ""]),
        }
        return self.operator("1.full", [], attributes, [tensor_type("int64", [])])

    def stack(self, *numbers: int) -> int:
        """The value, a list, of scalars."""
        type_list = [tensor_type("int64", [len(numbers)])]
        return self.operator("1.stack", [self.combine(numbers)], {"axis": 0}, type_list)

    def result(self, number: int, folder: Path) -> Array:
        """The value of a variable."""
        self.output(number)
        return image_through(load(self.save(folder)))


def test_reshape_to_one_computed_size(tmp_path: Path) -> None:
    of_2 = Sizes2()
    shape = [of_2.integer(0), of_2.integer(28), of_2.size(3)]
    attributes = {"shape": [0, 28, -1]}
    of_2.operator("reshape2", {"X": "x", "ShapeTensor": shape}, {"Out": "y"}, attributes)
    of_2.output("y")

    of_3 = Sizes3()
    shape_3 = of_3.stack(of_3.integer(0), of_3.integer(28), of_3.size(3))
    of_3.output(of_3.operator("1.reshape", [of_3.x, shape_3]))

    for writer in (of_2, of_3):
        model = load(writer.save(tmp_path))
        np.testing.assert_array_equal(image_through(model), IMAGE.reshape(2, 28, 9))
        (reshape,) = (op for op in model.operations if op.outputs == tuple(model.outputs.values()))
        assert [str(shape.value) for shape in reshape.inputs if shape and shape.is_constant] == [
            "[ 0 28 -1]"
        ]


def test_reshape_to_several_computed_sizes(tmp_path: Path) -> None:
    of_2 = Sizes2()
    of_2.parameter("four", np.array([4], np.int64))
    shape = [of_2.size(0), of_2.size(3), "four", of_2.size(2)]
    attributes = {"shape": [-1, -1, 4, -1]}
    of_2.operator("reshape2", {"X": "x", "ShapeTensor": shape}, {"Out": "y"}, attributes)
    np.testing.assert_array_equal(of_2.result(tmp_path), IMAGE.reshape(2, 9, 4, 7))

    of_3 = Sizes3()
    shape_3 = of_3.stack(of_3.size(0), of_3.size(3), of_3.integer(4), of_3.size(2))
    y = of_3.operator("1.reshape", [of_3.x, shape_3])
    np.testing.assert_array_equal(of_3.result(y, tmp_path), IMAGE.reshape(2, 9, 4, 7))


def test_reshape_to_the_shape_of_a_tensor(tmp_path: Path) -> None:
    of_2 = Sizes2()
    of_2.operator("reshape2", {"X": "x", "Shape": "shape"}, {"Out": "y"}, {"shape": []})
    np.testing.assert_array_equal(of_2.result(tmp_path), IMAGE)

    of_3 = Sizes3()
    y = of_3.operator("1.reshape", [of_3.x, of_3.shape])
    np.testing.assert_array_equal(of_3.result(y, tmp_path), IMAGE)


def test_slice_up_to_a_computed_end(tmp_path: Path) -> None:
    of_2 = Sizes2()
    of_2.operator("scale", {"X": of_2.size(2)}, {"Out": "end"}, {"scale": 1.0, "bias": -2.0})
    attributes = {"axes": [3], "starts": [1], "ends": [-1], "infer_flags": [-1]}
    of_2.operator("slice", {"Input": "x", "EndsTensorList": ["end"]}, {"Out": "y"}, attributes)
    np.testing.assert_array_equal(of_2.result(tmp_path), IMAGE[..., 1:5])

    of_3 = Sizes3()
    end = of_3.stack(of_3.size(2))
    attributes_3 = {"axes": Longs([3]), "infer_flags": Longs([-1]), "decrease_axis": Longs()}
    y = of_3.operator("1.slice", [of_3.x, of_3.constant([1]), end], attributes_3)
    np.testing.assert_array_equal(of_3.result(y, tmp_path), IMAGE[..., 1:7])


def test_fill_a_computed_shape(tmp_path: Path) -> None:
    of_2 = Sizes2()
    shape = [of_2.size(3), of_2.integer(2)]
    attributes = {"shape": [-1, 2], "dtype": 5, "value": 1.5, "str_value": ""}
    of_2.operator("fill_constant", {"ShapeTensorList": shape}, {"Out": "y"}, attributes)
    np.testing.assert_array_equal(of_2.result(tmp_path), np.full((9, 2), 1.5, np.float32))

    of_3 = Sizes3()
    shape_3 = of_3.stack(of_3.size(3), of_3.integer(2))
    element_type = {"dtype": ElementType.FLOAT32}
    y = of_3.operator("1.full_with_tensor", [of_3.constant(1.5), shape_3], element_type)
    np.testing.assert_array_equal(of_3.result(y, tmp_path), np.full((9, 2), 1.5, np.float32))


def test_expand_to_a_computed_shape(tmp_path: Path) -> None:
    of_2 = Sizes2()
    of_2.parameter("row", np.arange(4, dtype=np.float32))
    sizes = [of_2.size(2), of_2.integer(4)]
    inputs = {"X": "row", "expand_shapes_tensor": sizes}
    of_2.operator("expand_v2", inputs, {"Out": "y"}, {"shape": [-1, 4]})
    np.testing.assert_array_equal(of_2.result(tmp_path), np.tile(np.arange(4), (7, 1)))

    of_3 = Sizes3()
    row = of_3.parameter("row", np.arange(4, dtype=np.float32))
    y = of_3.operator("1.expand", [row, of_3.stack(of_3.size(2), of_3.integer(4))])
    np.testing.assert_array_equal(of_3.result(y, tmp_path), np.tile(np.arange(4), (7, 1)))


INTERPOLATION = {"align_corners": False, "align_mode": 0, "out_h": -1, "out_w": -1}


@pytest.mark.parametrize("slot", ["SizeTensor", "OutSize"])
def test_resample_to_a_computed_size(tmp_path: Path, slot: str) -> None:
    of_2 = Sizes2()
    sizes = [of_2.size(3), of_2.integer(14)]
    of_2.operator("concat", {"X": sizes}, {"Out": "sizes"}, {"axis": 0})
    inputs = {"X": "x", slot: sizes if slot == "SizeTensor" else "sizes"}
    attributes = INTERPOLATION | {"scale": Floats(), "data_layout": "NCHW"}
    of_2.operator("nearest_interp_v2", inputs, {"Out": "y"}, attributes)
    rows = [i * 7 // 9 for i in range(9)]
    columns = [i * 9 // 14 for i in range(14)]
    expected = IMAGE[:, :, rows][:, :, :, columns]
    np.testing.assert_array_equal(of_2.result(tmp_path), expected)

    of_3 = Sizes3()
    sizes_3 = [of_3.size(3), of_3.integer(14)]
    feeds = [of_3.stack(*sizes_3), 0] if slot == "OutSize" else [0, of_3.combine(sizes_3)]
    attributes_3 = INTERPOLATION | {"scale": [], "data_format": "NCHW"}
    y = of_3.operator("1.nearest_interp", [of_3.x, *feeds, 0], attributes_3)
    np.testing.assert_array_equal(of_3.result(y, tmp_path), expected)


def test_scale_by_a_computed_factor(tmp_path: Path) -> None:
    of_2 = Sizes2()
    of_2.operator("cast", {"X": of_2.size(3)}, {"Out": "f"}, {"in_dtype": 2, "out_dtype": 5})
    inputs = {"X": "x", "ScaleTensor": "f"}
    of_2.operator("scale", inputs, {"Out": "y"}, {"scale": 1.0, "bias": 1.0})
    np.testing.assert_allclose(of_2.result(tmp_path), 9 * IMAGE + 1, rtol=1e-6)


def test_constants_in_place_of_attributes(tmp_path: Path) -> None:
    writer = Sizes2()
    inputs = {"X": ["x", "x"], "AxisTensor": writer.integer(1)}
    writer.operator("concat", inputs, {"Out": "two"}, {"axis": 0})
    inputs = {"X": "two", "AxisTensor": "integer_1", "SectionsTensorList": ["integer_1", "seven"]}
    writer.parameter("seven", np.array([7], np.int32))
    attributes = {"axis": 0, "sections": [-1, -1], "num": 0}
    writer.operator("split", inputs, {"Out": ["first", "y"]}, attributes)
    np.testing.assert_array_equal(writer.result(tmp_path), np.concatenate([IMAGE, IMAGE], 1)[:, 1:])


def test_an_attribute_that_is_a_variable(tmp_path: Path) -> None:
    writer = Sizes2()
    writer.parameter("p", np.array([0.25], np.float32))
    op = writer.operator(
        "dropout", {"X": "x"}, {"Out": "y"}, {"dropout_implementation": "downgrade_in_infer"}
    )
    op.attrs.add(name=b"dropout_prob", type=13, var_name=b"p")
    np.testing.assert_allclose(writer.result(tmp_path), 0.75 * IMAGE, rtol=1e-6)


def test_a_computed_parameter_that_must_be_known(tmp_path: Path) -> None:
    writer = Sizes2()
    writer.operator("split", {"X": "x", "AxisTensor": writer.size(0)}, {"Out": "y"}, {"num": 1})
    writer.output("y")
    with pytest.raises(UnsupportedError, match=r"operator 3 \(split\): axis is computed"):
        load(writer.save(tmp_path))


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(
    ("x", "y", "axis", "aligned"),
    [
        ((2, 3, 4, 5), (3, 4), 1, (3, 4, 1)),
        ((2, 3, 4, 5), (3,), 1, (3, 1, 1)),
        ((2, 3, 4, 5), (2,), 0, (2, 1, 1, 1)),
        ((2, 3, 4, 5), (5,), 3, (5,)),
        ((2, 3, 4, 5), (4, 5), -1, (4, 5)),
        ((2, 3), (2, 3), 1, (2, 3)),
    ],
)
def test_elementwise_axis(
    tmp_path: Path,
    x: tuple[int, ...],
    y: tuple[int, ...],
    axis: int,
    aligned: tuple[int, ...],
    is_constant: bool,
) -> None:
    large, small = normal(1, *x), normal(2, *y)
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, *x[1:]])
    if is_constant:
        writer.parameter("y", small)
    else:
        writer.input("y", "float32", y)
    for first, second in (("x", "y"), ("y", "x")):
        inputs = {"X": first, "Y": second}
        writer.operator("elementwise_sub", inputs, {"Out": f"{first}-"}, {"axis": axis})
        writer.output(f"{first}-")
    result, negative = outputs(load(writer.save(tmp_path)), {"x": large, "y": small})
    np.testing.assert_array_equal(result, large - small.reshape(aligned))
    np.testing.assert_array_equal(negative, -result)


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [("120", 2, 120), ("-7", 3, -7), ("9007199254740993", 3, 2**53 + 1), ("0.5", 5, 0.5)],
)
def test_fill_constant_with_a_value_in_a_text(
    tmp_path: Path, text: str, dtype: int, value: float
) -> None:
    writer = Paddle2Writer()
    attributes = {"shape": [2], "dtype": dtype, "value": 0.0, "str_value": text}
    writer.operator("fill_constant", {}, {"Out": "y"}, attributes)
    writer.output("y")
    (result,) = outputs(load(writer.save(tmp_path)), {})
    assert result.tolist() == [value, value]


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_fill_constant_with_a_value_in_a_tensor(tmp_path: Path, dtype: str) -> None:
    writer = Paddle2Writer()
    writer.input("value", dtype, [1])
    attributes = {"shape": [3], "dtype": 5, "value": 0.0, "str_value": ""}
    writer.operator("fill_constant", {"ValueTensor": "value"}, {"Out": "y"}, attributes)
    writer.output("y")
    (result,) = outputs(load(writer.save(tmp_path)), {"value": np.array([7], dtype)})
    assert result.dtype == np.float32
    assert result.tolist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("type", "attributes", "expected"),
    [
        ("swish", {"beta": 2.0}, IMAGE / (1 + np.exp(-2 * IMAGE))),
        ("relu6", {"threshold": 0.5}, IMAGE.clip(0, 0.5)),
    ],
)
def test_activations_of_another_form(
    tmp_path: Path, type: str, attributes: dict[str, float], expected: Array
) -> None:
    writer = Sizes2()
    writer.operator(type, {"X": "x"}, {"Out": "y"}, attributes)
    np.testing.assert_allclose(writer.result(tmp_path), expected, rtol=1e-6)


def test_a_number_beyond_float32_is_infinite(tmp_path: Path) -> None:
    writer = Sizes3()
    y = writer.operator("1.leaky_relu", [writer.x], {"negative_slope": Double(1e300)})
    np.testing.assert_array_equal(
        writer.result(y, tmp_path), np.where(IMAGE < 0, -np.float32(np.inf), IMAGE)
    )


def test_a_list_of_tensors_can_be_picked_from(tmp_path: Path) -> None:
    writer = Sizes3()
    double = writer.operator("1.scale", [writer.x, writer.constant(2.0)], {"bias": 0.0})
    both = writer.combine([writer.x, double])
    y = writer.operator("0.slice", [both], {"index": 1})
    np.testing.assert_array_equal(writer.result(y, tmp_path), 2 * IMAGE)


@pytest.mark.parametrize(("text", "value"), [("INF", np.inf), ("-INF", -np.inf)])
def test_numbers_that_json_cannot_write(tmp_path: Path, text: str, value: float) -> None:
    writer = Sizes3()
    infinite = writer.constant(0.0)
    writer.operators[-1]["A"][1]["AT"] = {"#": "0.a_f64", "VD": text}
    y = writer.operator("1.full_like", [writer.x, infinite], {"dtype": ElementType.FLOAT32})
    assert (writer.result(y, tmp_path) == value).all()


@pytest.mark.parametrize(
    ("element_type", "values"),
    [
        (ElementType.FLOAT32, [1.5, -2.5]),
        (ElementType.INT64, Longs([2**53 + 1, -1])),
        (ElementType.BOOL, [True, False]),
    ],
)
def test_values_that_are_assigned(
    tmp_path: Path, element_type: ElementType, values: list[float]
) -> None:
    writer = Paddle3Writer()
    place = writer.constant(0.0)
    attributes = {"shape": [2, 1], "dtype": element_type, "values": values}
    type_list = [tensor_type(element_type.value, [2, 1])]
    writer.output(writer.operator("1.assign_value_", [place], attributes, type_list))
    (result,) = outputs(load(writer.save(tmp_path)), {})
    assert result.dtype == element_type.dtype
    assert result.tolist() == [[value] for value in values]


def test_values_that_do_not_fit_their_shape(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    attributes = {"shape": [3], "dtype": 5, "fp32_values": Floats([1.5])}
    writer.operator("assign_value", {}, {"Out": "y"}, attributes)
    writer.output("y")
    with pytest.raises(ModelFileError, match=r"shape: \[3\] is not that of 1 values"):
        load(writer.save(tmp_path))
