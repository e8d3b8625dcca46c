"""Damaged and hostile `.pt2` files: errors of crosschip's, and nothing in them is executed."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.importers.pytorch.programs import (
    MODEL,
    SAVED,
    WEIGHTS,
    archive,
    damaged,
    edited,
    members,
    saved,
)

import crosschip
from crosschip.importers.pytorch.description import check_expression
from crosschip.ir import BudgetError, Error, ModelFileError

BLOCKS = 40
IN_BLOCK = 75


@pytest.fixture(scope="module")
def programs() -> dict[str, bytes]:
    return {name: saved(name) for name in SAVED}


@pytest.fixture(scope="module")
def program() -> bytes:
    return saved("Conv2d")


class Evil:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_damage_is_an_error_of_crosschips(program: bytes) -> None:
    outcomes = [outcome(damaged(program, seed)) for seed in range(4)]
    assert len(set(outcomes)) > 1


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(BLOCKS))
def test_much_damage_is_an_error_of_crosschips(programs: dict[str, bytes], block: int) -> None:
    for seed in range(block * IN_BLOCK, (block + 1) * IN_BLOCK):
        outcome(damaged(programs[SAVED[seed % len(SAVED)]], seed))


def outcome(content: bytes) -> str:
    """Return the type of the error of loading; any but crosschip's own fails the test."""
    try:
        crosschip.load(content)
    except Error as error:
        return type(error).__name__
    return "loaded"


def test_pickled_weights_are_refused_and_not_read(program: bytes, tmp_path: Path) -> None:
    touched = tmp_path / "touched"

    def pickle_weight(config: Any) -> None:
        config["config"]["weight"]["use_pickle"] = True

    content = edited(program, WEIGHTS, pickle_weight)
    content = archive({**members(content), "data/weights/weight_0": pickle.dumps(Evil(touched))})
    with pytest.raises(ModelFileError, match=r"'weight' is pickled.*if you trust it, load it with"):
        crosschip.load(content)
    assert not touched.exists()


def test_pickled_examples_are_not_read(program: bytes, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    content = {**members(program), "data/sample_inputs/model.pt": pickle.dumps(Evil(touched))}
    assert crosschip.load(archive(content)).outputs
    assert not touched.exists()


def first_size(document: Any) -> Any:
    """Return the first symbolic size of the program."""
    values = document["graph_module"]["graph"]["tensor_values"].values()
    return next(size for value in values for size in value["sizes"] if "as_expr" in size)


HOSTILE_EXPRESSIONS = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0]",
    "Symbol('s0').func",
    "(lambda: 1)()",
    "[x for x in (1,)]",
    "Pow(Integer(9), Pow(Integer(9), Integer(9)))",
    "9 ** 9 ** 9",
    "Symbol('s0') ** Integer(1000000)",
    "Integer(open('x'))",
    "exec('1')",
    "s0 if s0 else s1",
    "f'{s0}'",
    "(" * 500 + "s0" + ")" * 500,
    "s0 + " * 2000 + "s0",
    "",
    5,
]


@pytest.mark.parametrize("text", HOSTILE_EXPRESSIONS)
def test_only_arithmetic_is_a_size(text: Any) -> None:
    with pytest.raises(ModelFileError, match="is no size"):
        check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s77', positive=True, integer=True)",
        "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))",
        "FloorDiv(Add(Symbol('s1', integer=True), Integer(-1)), Integer(2))",
        "Pow(Symbol('s0', integer=True), Integer(2))",
        "Max(Integer(1), Symbol('u0', integer=True))",
        "Eq(Symbol('s0', integer=True), Integer(1))",
        "2*s0 + 1",
        "s0**2 // 4",
    ],
)
def test_arithmetic_is_a_size(text: str) -> None:
    check_expression(text)


def test_hostile_descriptions_are_refused(program: bytes, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    code = f"__import__('pathlib').Path({str(touched)!r}).touch()"

    def evaluate(document: Any) -> None:
        first_size(document)["as_expr"]["expr_str"] = code

    def call(document: Any) -> None:
        document["graph_module"]["graph"]["nodes"][0]["target"] = "torch.hub.load"

    def import_module(document: Any) -> None:
        signature = document["graph_module"]["module_call_graph"][0]["signature"]
        factory = {"default_factory_module": "this", "default_factory_name": "s"}
        kind = {"type": "collections.defaultdict", "context": factory, "children_spec": []}
        signature["in_spec"] = json.dumps([1, kind])

    def enumerate_keys(document: Any) -> None:
        signature = document["graph_module"]["module_call_graph"][0]["signature"]
        keys = json.dumps([{"__enum__": True, "fqn": "this:s", "name": "x"}])
        kind = {"type": "builtins.dict", "context": keys, "children_spec": []}
        signature["out_spec"] = json.dumps([1, kind])

    def guard_on_a_gpu(document: Any) -> None:
        document["guards_code"] = [code]
        for value in document["graph_module"]["graph"]["tensor_values"].values():
            value["device"] = {"type": "cuda", "index": 0}

    for edit, reason in [
        (evaluate, "is no size"),
        (call, "calls 'torch.hub.load', which is no operator"),
        (import_module, "have the class 'collections.defaultdict'"),
        (enumerate_keys, "keys of its inputs or outputs are not texts"),
    ]:
        with pytest.raises(ModelFileError, match=reason):
            crosschip.load(edited(program, MODEL, edit))
    assert crosschip.load(edited(program, MODEL, guard_on_a_gpu)).outputs
    assert not touched.exists()


def test_weights_are_bounded_by_the_file(program: bytes) -> None:
    def enlarge(config: Any) -> None:
        meta = config["config"]["weight"]["tensor_meta"]
        meta["sizes"][0] = {"as_int": 2**40}
        meta["strides"][0] = {"as_int": 0}

    with pytest.raises(BudgetError, match="grow by over"):
        crosschip.load(edited(program, WEIGHTS, enlarge))
    content = {**members(program), "data/weights/weight_0": b""}
    with pytest.raises(ModelFileError, match="was saved without the elements of 'weight'"):
        crosschip.load(archive(content))


def test_archives_are_checked(program: bytes) -> None:
    inside = members(program)
    for content, reason in [
        (archive(inside, zipfile.ZIP_DEFLATED), "is compressed"),
        (archive({**inside, "archive_format": b"other"}), "no exported program of PyTorch"),
        (
            archive({"archive_format": b"pt2", "data/aotinductor/model/a.so": b""}),
            "holds a compiled program",
        ),
        (program[:-30], "is damaged|no exported program"),
    ]:
        with pytest.raises(ModelFileError, match=reason):
            crosschip.load(content)
