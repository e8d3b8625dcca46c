"""Programs with branches and loops, compared with Paddle's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.importers.paddle.writers import write_attribute

import crosschip
from crosschip.importers import load
from crosschip.importers.paddle import messages
from crosschip.ir import If, Loop, Model, ModelFileError
from crosschip.ir.bodies import every_operation
from crosschip.passes import simplify

PROGRAMS = (
    "branch",
    "branch_in_loop",
    "branch_of_open_size",
    "branches_in_branches",
    "growing",
    "known",
    "loop_in_branch",
    "loop_in_loop",
    "several_values",
    "times",
    "unlike_shapes",
    "until_large",
    "without_else",
)
DEVICES = ("reference", "openvino,reference", "onnxruntime")


def program(models: Path, format: str, name: str) -> Model:
    suffix = {"pdmodel": ".pdmodel", "json": ".json"}[format]
    return load(models / "control" / format / name / f"model{suffix}")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("format", ["pdmodel", "json"])
def test_computes_what_paddle_does(models: Path, format: str, name: str) -> None:
    model = program(models, format, name)
    model.verify()
    assert_like_paddle(model, models / "control" / format / name)


@pytest.mark.parametrize("name", ["filled", "filled_by_place"])
@pytest.mark.parametrize("format", ["pdmodel", "json"])
def test_a_loop_fills_arrays_as_paddle_does(models: Path, format: str, name: str) -> None:
    folder = models / "arrays" / format / name
    model = load(folder)
    model.verify()
    assert_like_paddle(model, folder)


def assert_like_paddle(model: Model, folder: Path) -> None:
    """Compare a model's outputs on several devices with Paddle's."""
    calls = sorted(folder.glob("oracle-*.npz"))
    assert len(calls) > 1
    for devices in DEVICES:
        with crosschip.compile(model, devices, cache=False) as compiled:
            for path in calls:
                oracle = np.load(path)
                inputs = {key[6:]: oracle[key] for key in oracle if key.startswith("input:")}
                result = list(compiled.run(inputs).values())
                expected = [oracle[key] for key in oracle if key.startswith("output:")]
                assert len(result) == len(expected)
                for one, other in zip(result, expected, strict=True):
                    assert (one.dtype, one.shape) == (other.dtype, other.shape)
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["branch", "several_values", "without_else"])
def test_two_blocks_and_a_choice_become_one_branch(models: Path, name: str) -> None:
    used = simplify(program(models, "pdmodel", name)).operations
    assert [operation.type for operation in used if operation.bodies] == ["IF"]
    of_3 = simplify(program(models, "json", name)).operations
    assert sorted(o.type for o in used if o.type not in ("NOT", "CAST")) == sorted(
        o.type for o in of_3
    )


def modified_program(models: Path, name: str, folder: Path, change: Callable[[Any], None]) -> Model:
    """Import a Paddle 2 program with a changed first block."""
    data = (models / "control" / "pdmodel" / name / "model.pdmodel").read_bytes()
    parsed: Any = cast(Any, messages.message_class(messages.ProgramDesc)())
    parsed.ParseFromString(data)
    change(parsed.blocks[0].ops)
    path = folder / "model.pdmodel"
    path.write_bytes(parsed.SerializeToString())
    return load(path)


@pytest.mark.parametrize("reversed_", [(), (0,), (1,), (0, 1)])
def test_blocks_name_what_they_make_in_any_order(
    models: Path, tmp_path: Path, reversed_: Sequence[int]
) -> None:
    def change(operators: Any) -> None:
        blocks = [op for op in operators if op.type == b"conditional_block"]
        for number in reversed_:
            (out,) = (slot for slot in blocks[number].outputs if slot.parameter == b"Out")
            out.arguments[:] = out.arguments[::-1]

    model = simplify(modified_program(models, "several_values", tmp_path, change))
    assert [operation.type for operation in model.operations if operation.bodies] == ["IF"]
    assert_like_paddle(model, models / "control" / "pdmodel" / "several_values")


def test_blocks_read_what_variables_were_when_they_ran(models: Path, tmp_path: Path) -> None:
    def change(operators: Any) -> None:
        last = max(i for i, op in enumerate(operators) if op.type == b"conditional_block")
        later = list(operators)[last + 1 :]
        del operators[last + 1 :]
        write = operators.add(type=b"scale")
        for slots, slot in ((write.inputs, b"X"), (write.outputs, b"Out")):
            slots.add(parameter=slot, arguments=[b"x0"])
        write_attribute(write.attrs.add(name=b"scale"), -5.0)
        operators.extend(later)

    model = modified_program(models, "several_values", tmp_path, change)
    assert_like_paddle(model, models / "control" / "pdmodel" / "several_values")


def test_what_is_known_is_unrolled_when_it_is_compiled(models: Path) -> None:
    for format in ("pdmodel", "json"):
        simple = simplify(program(models, format, "known"))
        assert not any(operation.bodies for operation in simple.operations)


def test_sizes_are_kept_where_both_branches_have_them(models: Path) -> None:
    for format in ("pdmodel", "json"):
        model = program(models, format, "branch_of_open_size")
        (output,) = model.outputs.values()
        (feeds,) = model.inputs.values()
        assert output.type.shape == feeds.type.shape


def test_loops_and_branches_nest(models: Path) -> None:
    for format in ("pdmodel", "json"):
        kinds = {type(o) for o in every_operation(program(models, format, "branch_in_loop"))}
        assert {If, Loop} <= kinds


def test_a_block_that_runs_itself_is_refused(models: Path, tmp_path: Path) -> None:
    data = (models / "control" / "pdmodel" / "branch_in_loop" / "model.pdmodel").read_bytes()
    parsed = messages.parse(messages.ProgramDesc, data)
    inner = next(op for op in parsed.blocks[1].ops if op.type == b"conditional_block")
    (attribute,) = (a for a in inner.attrs if a.name == b"sub_block")
    assert attribute.block_idx > 1
    # The field is a varint of one byte behind its tag, 12 << 3.
    looping = data.replace(bytes([12 << 3, attribute.block_idx]), bytes([12 << 3, 1]))
    assert looping != data
    path = tmp_path / "model.pdmodel"
    path.write_bytes(looping)
    with pytest.raises(ModelFileError, match="block 1 is not there, or is run by two operators"):
        load(path)
