"""Error messages for damaged files, and for files that do not match."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import VALUE, import_error, small, small_3
from tests.importers.paddle.writers import (
    Paddle2Writer,
    Paddle3Writer,
    combined,
    record,
    tensor_type,
)

from crosschip.importers import load
from crosschip.ir import Error, ModelFileError, UnsupportedError

Change = Callable[[Any], object]


def test_a_missing_parameter_file(tmp_path: Path) -> None:
    path = small().save(tmp_path)
    path.with_suffix(".pdiparams").unlink()
    with pytest.raises(ModelFileError, match=r"inference\.pdiparams: there is no such file"):
        load(path)


def test_a_missing_file_of_a_parameter(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "layouts" / "separate", tmp_path, dirs_exist_ok=True)
    (tmp_path / "linear_0.w_0").unlink()
    with pytest.raises(ModelFileError, match=r"linear_0\.w_0: there is no such file"):
        load(tmp_path)


GOOD = record(VALUE)
PARAMETER_FILES = {
    "empty": (b"", "'w': needs 12 bytes more, but the file has 0 left"),
    "too short": (GOOD[:-1], "'w': needs 36 bytes more, but the file has 35 left"),
    "too long": (GOOD + b"123", "3 bytes are left after the last parameter 'w'"),
    "another version": (b"\1" + GOOD[1:], "'w': has a record of version 1"),
    "another shape": (
        record(VALUE.reshape(9)),
        r"'w': is float32\[9\], but the program has it as float32\[3, 3\]",
    ),
    "another type": (
        record(VALUE.astype(np.float64)),
        r"'w': is float64\[3, 3\], but the program has it as float32\[3, 3\]",
    ),
    "levels of detail": (GOOD[:4] + b"\2" + GOOD[5:], "'w': has 2 levels of detail"),
    "a description of negative size": (
        GOOD[:16] + b"\xff\xff\xff\xff" + GOOD[20:],
        "'w': needs -1 bytes more",
    ),
    "no description": (GOOD[:20] + b"\xff" * 6 + GOOD[26:], "'w': is not a protobuf message"),
}


@pytest.mark.parametrize("kind", PARAMETER_FILES)
@pytest.mark.parametrize("write", [small, small_3])
def test_a_damaged_parameter_file(
    tmp_path: Path, kind: str, write: Callable[[], Paddle2Writer | Paddle3Writer]
) -> None:
    content, message = PARAMETER_FILES[kind]
    path = write().save(tmp_path)
    path.with_suffix(".pdiparams").write_bytes(content)
    with pytest.raises(Error, match=rf"inference\.pdiparams: .*{message}"):
        load(path)


def test_parameters_of_a_model_without_any(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [1])
    writer.output("x")
    path = writer.save(tmp_path)
    path.with_suffix(".pdiparams").write_bytes(combined({"w": VALUE}))
    assert "62 bytes are left of a model without any" in import_error(path)


@pytest.mark.parametrize("name", ["/etc/hostname", "../w", "a/../../w", "w\0"])
def test_a_parameter_outside_the_folder(tmp_path: Path, name: str) -> None:
    writer = Paddle2Writer()
    writer.parameter(name, VALUE)
    writer.output(name)
    path = tmp_path / "__model__"
    path.write_bytes(writer.program.SerializeToString())
    assert "outside the folder" in import_error(path)


def test_an_empty_program(tmp_path: Path) -> None:
    path = tmp_path / "inference.pdmodel"
    path.write_bytes(b"")
    assert "holds no program" in import_error(path)


def test_a_program_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "__model__"
    path.write_bytes(b"\xff\xd8\xff\xe0 no model at all")
    assert "not a protobuf message" in import_error(path)
    path = tmp_path / "model.json"
    path.write_bytes(b'{"base_code": {"magic": "pir"}, "program": ')
    assert "is not JSON" in import_error(path)
    path.write_bytes(b'{"base_code": {"magic": "pir"}, "program": ' + b"[" * 100_000)
    assert "is not JSON" in import_error(path)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "inference.pdmodel").mkdir()
    assert "not a model file that an importer knows" in import_error(tmp_path)


def test_a_program_without_a_result(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [1])
    assert "is no inference model" in import_error(writer.save(tmp_path))
    of_3 = Paddle3Writer()
    of_3.input("x", "float32", [1])
    assert "is no inference model" in import_error(of_3.save(tmp_path))


CHANGES_2: dict[str, tuple[Change, str]] = {
    "an input that is not declared": (
        lambda w: w.operator("feed", {"X": "feed"}, {"Out": "z"}),
        "the input 'z' is not declared",
    ),
    "an input twice": (
        lambda w: w.operator("feed", {"X": "feed"}, {"Out": "x"}),
        "there are two inputs called 'x'",
    ),
    "an output of nothing": (lambda w: w.operator("fetch", {}, {}), "X must be one variable"),
    "an output that nothing makes": (lambda w: w.output("z"), "'z' is read"),
    "a name that is not text": (
        lambda w: w.block.vars.add(name=b"\xff\xfe"),
        "is not text",
    ),
    "a parameter that is no tensor": (
        lambda w: setattr(w.block.vars[1].type, "type", 8),
        "'w' is of type 8, not a dense tensor",
    ),
    "a shape that is none": (
        lambda w: w.block.vars[0].type.lod_tensor.tensor.dims.append(-7),
        r"variable 'x': [-1, 3, -7] is not the shape of a tensor",
    ),
    "a shape of too many axes": (
        lambda w: w.block.vars[0].type.lod_tensor.tensor.dims.extend([1] * 40),
        "is not the shape of a tensor",
    ),
    "an element type that is none": (
        lambda w: setattr(w.block.vars[0].type.lod_tensor.tensor, "data_type", 99),
        "variable 'x': element type 99",
    ),
}


@pytest.mark.parametrize("kind", CHANGES_2)
def test_a_damaged_program_of_paddle_2(tmp_path: Path, kind: str) -> None:
    change, message = CHANGES_2[kind]
    writer = small()
    change(writer)
    assert message in import_error(writer.save(tmp_path))


CHANGES_3: dict[str, tuple[Change, str]] = {
    "no program": (lambda d: d.pop("program"), "'program' is missing"),
    "no regions": (lambda d: d["program"].update(regions=[]), "there must be one value, not 0"),
    "no list of operators": (
        lambda d: d["program"]["regions"][0]["blocks"][0].update(ops={}),
        "'ops' is not a list",
    ),
    "no block": (lambda d: d["program"]["regions"][0].pop("blocks"), "'blocks' is missing"),
    "two blocks": (lambda d: d["program"]["regions"][0]["blocks"].append({}), "2 blocks"),
    "an operator that is a number": (lambda d: ops(d).insert(0, 5), "operator 0: '#' is missing"),
    "a parameter without a name": (lambda d: ops(d)[0]["A"].pop(), "operator 0: 3 is not"),
    "a parameter of no type": (lambda d: ops(d)[0]["O"].pop("TT"), "operator 0: 'TT' is missing"),
    "a value that is a text": (
        lambda d: ops(d)[2]["I"][0].update({"%": "2"}),
        "operator 2: '%' is missing or not an integer",
    ),
    "an enormous integer": (
        lambda d: ops(d)[2]["I"][0].update({"%": 10**30}),
        "operator 2: '%' is missing or not an integer",
    ),
    "an attribute of unknown type": (
        lambda d: ops(d)[2]["A"].append({"N": "transpose_x", "AT": {"#": "0.a_x"}}),
        "operator 2 (pd_op.matmul): attributes of type 'a_x'",
    ),
    "an element type that is none": (
        lambda d: ops(d)[1]["O"][0]["TT"]["D"][0].update({"#": "0.t_c64"}),
        "operator 1: element type 't_c64'",
    ),
    "two variables of one name": (
        lambda d: ops(d)[1]["A"][0]["AT"].update(D="w"),
        "two variables called 'w'",
    ),
    "two outputs of one name": (lambda d: ops(d).append(ops(d)[-1]), "two outputs called"),
}


def ops(document: Any) -> list[Any]:
    """Return the operators of a Paddle 3 program."""
    result: list[Any] = document["program"]["regions"][0]["blocks"][0]["ops"]
    return result


@pytest.mark.parametrize("kind", CHANGES_3)
def test_a_damaged_program_of_paddle_3(tmp_path: Path, kind: str) -> None:
    change, message = CHANGES_3[kind]
    path = small_3().save(tmp_path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    assert message in import_error(path)


def test_an_enormous_constant_takes_no_memory(tmp_path: Path) -> None:
    writer = small()
    attributes = {"shape": [2**20, 2**20], "dtype": 5, "value": 1.0, "str_value": "1"}
    writer.operator("fill_constant", {}, {"Out": "z"}, attributes)
    path = writer.save(tmp_path)
    tracemalloc.start()
    model = load(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [op.type for op in model.operations] == ["MAT_MUL", "FILL"]
    assert peak < 2**24


@pytest.mark.parametrize("axes", [33, 1000])
def test_a_constant_of_many_axes(tmp_path: Path, axes: int) -> None:
    writer = small()
    attributes = {"shape": [1] * axes, "dtype": 5, "value": 1.0, "str_value": "1"}
    writer.operator("fill_constant", {}, {"Out": "z"}, attributes)
    assert f"has {axes} sizes, but a tensor has at most 32" in import_error(writer.save(tmp_path))


def test_an_enormous_parameter_takes_no_memory(tmp_path: Path) -> None:
    writer = small()
    writer.block.vars[1].type.lod_tensor.tensor.dims[:] = [2**40, 2**40]
    path = writer.save(tmp_path)
    desc = record(VALUE.reshape(9))
    path.with_suffix(".pdiparams").write_bytes(desc)
    assert "the program has it as float32[1099511627776, 1099511627776]" in import_error(path)


def test_a_parameter_in_place_of_a_list_of_sizes(tmp_path: Path) -> None:
    writer = small()
    writer.parameter("sizes", np.ones(2000, np.int64))
    writer.operator("reshape2", {"X": "x", "Shape": "sizes"}, {"Out": "z"}, {"shape": []})
    assert "'sizes' is int64[2000], not a short list" in import_error(writer.save(tmp_path))


@pytest.mark.parametrize(
    ("dtype", "attributes", "message"),
    [
        (3, {"str_value": "twelve"}, "str_value: 'twelve' is not a number"),
        (3, {"str_value": "1" + "0" * 30}, "str_value: 1"),
        (3, {"str_value": "", "value": float("inf")}, "value: inf is not a value of int64"),
        (3, {"str_value": "-nan"}, "value: nan is not a value of int64"),
    ],
)
def test_a_constant_of_no_value(
    tmp_path: Path, dtype: int, attributes: dict[str, Any], message: str
) -> None:
    writer = small()
    fill_attributes = {"shape": [2], "dtype": dtype, "value": 0.0, **attributes}
    writer.operator("fill_constant", {}, {"Out": "z"}, fill_attributes)
    assert f"operator 3 (fill_constant): {message}" in import_error(writer.save(tmp_path))


def test_an_enormous_list_of_sizes(tmp_path: Path) -> None:
    writer = Paddle3Writer()
    x = writer.input("x", "float32", [8])
    shape = writer.input("shape", "int64", [2**40])
    type_list = [tensor_type("float32", [])]
    writer.output(writer.operator("1.reshape", [x, shape], {}, type_list))
    assert "not a short list" in import_error(writer.save(tmp_path))


@pytest.mark.parametrize("count", [40, 3000])
def test_control_flow_that_is_nested_too_deep(count: int) -> None:
    writer = Paddle2Writer()
    writer.input("x", "bool", [1])
    writer.variable("y", "bool", [1])
    for index in range(1, count):
        block = writer.program.blocks[-1] if index == 1 else writer.program.blocks.add()
        _conditional(block, index)
    writer.program.blocks.add()
    writer.output("y")
    with pytest.raises(UnsupportedError, match="nested over 32 deep"):
        load(writer.program.SerializeToString())


def _conditional(block: Any, runs: int) -> None:
    op = block.ops.add(type=b"conditional_block")
    op.inputs.add(parameter=b"Cond", arguments=[b"x"])
    op.outputs.add(parameter=b"Out", arguments=[b"y"])
    op.attrs.add(name=b"sub_block", type=8, block_idx=runs)
