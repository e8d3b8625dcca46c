"""Names and shapes of a model's inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import normal, outputs, small, small_3
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer

from crosschip.importers import load

SHAPES = [
    ([[-1, 3, -1, -1]], ["float32[N, 3, H, W]"]),
    ([[-1, -1, 224, 224]], ["float32[N, C, 224, 224]"]),
    ([[-1, -1, 80]], ["float32[N, x0_1, 80]"]),
    ([[2, 3]], ["float32[2, 3]"]),
    ([[]], ["float32[]"]),
    (
        [[-1, 3, -1, 8], [-1, 2], [-1]],
        ["float32[x0_N, 3, x0_H, 8]", "float32[x1_N, 2]", "float32[x2_N]"],
    ),
]


@pytest.mark.parametrize(("shapes", "types"), SHAPES)
def test_open_sizes_become_symbols(
    tmp_path: Path, shapes: list[list[int]], types: list[str]
) -> None:
    of_2, of_3 = Paddle2Writer(), Paddle3Writer()
    for index, shape in enumerate(shapes):
        of_2.input(f"x{index}", "float32", shape)
        of_3.output(of_3.input(f"x{index}", "float32", shape))
        of_2.output(f"x{index}")
    for writer in (of_2, of_3):
        model = load(writer.save(tmp_path))
        assert [str(operand.type) for operand in model.inputs.values()] == types


def test_inputs_and_outputs_are_in_the_order_of_their_columns(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    for name, column in (("b", 1), ("a", 0)):
        writer.variable(name, "float32", [1])
        writer.operator("feed", {"X": "feed"}, {"Out": name}, {"col": column})
    for name, column in (("a", 1), ("b", 0)):
        writer.operator("fetch", {"X": name}, {"Out": "fetch"}, {"col": column})
    model = load(writer.save(tmp_path))
    assert (list(model.inputs), list(model.outputs)) == (["a", "b"], ["b", "a"])


def test_paddle_2_names_outputs_by_variable_and_operands_too(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [1])
    for name in ("relu_0.tmp_0", "out"):
        writer.operator("relu", {"X": "x"}, {"Out": name})
    writer.output("out")
    model = load(writer.save(tmp_path))
    assert list(model.outputs) == ["out"]
    assert [op.name for op in model.operations] == ["relu_0", "relu_1"]
    assert [op.outputs[0].name for op in model.operations] == ["relu_0.tmp_0", "out"]


def test_paddle_3_names_outputs_by_fetch_and_operands_by_operation(tmp_path: Path) -> None:
    writer = Paddle3Writer()
    x = writer.input("x", "float32", [1])
    writer.output(writer.operator("1.relu", [writer.operator("1.relu", [x])]))
    model = load(writer.save(tmp_path))
    assert list(model.outputs) == ["fetch_name_0"]
    assert [op.outputs[0].name for op in model.operations] == ["relu_0", "relu_1"]


def test_an_output_can_be_handed_out_by_a_shadow_output(tmp_path: Path) -> None:
    writer = Paddle3Writer()
    x = writer.input("x", "float32", [1])
    y = writer.operator("1.relu", [x])
    writer.operator("0.shadow_output", [y], {"output_name": "result"}, [])
    assert list(load(writer.save(tmp_path)).outputs) == ["result"]


def test_a_variable_that_is_written_to_again_is_another_operand(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [1])
    writer.operator("relu", {"X": "x"}, {"Out": "y"})
    writer.operator("exp", {"X": "y"}, {"Out": "y"})
    writer.output("y")
    model = load(writer.save(tmp_path))
    model.verify()
    names = [operation.outputs[0].name for operation in model.operations]
    assert len(set(names)) == 2
    assert model.outputs["y"] is model.operations[1].outputs[0]


def test_operand_names_of_paddle_3_do_not_clash_with_those_of_the_file(tmp_path: Path) -> None:
    writer = Paddle3Writer()
    x = writer.input("relu_0", "float32", [1])
    positive = writer.operator("1.relu", [x])
    writer.output(writer.operator("1.subtract", [x, positive]))
    model = load(writer.save(tmp_path))
    assert model.operations[0].outputs[0].name != "relu_0"
    (result,) = outputs(model, {"relu_0": np.array([-2], np.float32)})
    assert result.tolist() == [-2]


@pytest.mark.parametrize("count", [3000])
def test_long_chains(tmp_path: Path, count: int) -> None:
    of_2, of_3 = Paddle2Writer(), Paddle3Writer()
    of_2.input("v0", "float32", [-1, 2])
    last = of_3.input("v0", "float32", [-1, 2])
    for index in range(count):
        of_2.operator("relu", {"X": f"v{index}"}, {"Out": f"v{index + 1}"})
        last = of_3.operator("1.relu", [last])
    of_2.output(f"v{count}")
    of_3.output(last)
    for writer in (of_2, of_3):
        assert len(load(writer.save(tmp_path)).operations) == count


def test_sequences_are_the_tensor_that_holds_them(tmp_path: Path) -> None:
    of_2, of_3 = small(), small_3()
    of_2.block.vars[0].type.lod_tensor.lod_level = 1
    of_3.operators[1]["O"][0]["TT"]["D"][3] = [[0, 1]]
    x = normal(0, 5, 3)
    for writer in (of_2, of_3):
        (result,) = outputs(load(writer.save(tmp_path)), {"x": x})
        np.testing.assert_array_equal(result, x)
