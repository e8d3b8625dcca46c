"""DOT and SVG: well-formed whatever the names are, and complete."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of
from tests.random_models import Example, examples

from crosschip.drawing.dot import colours_of, to_dot
from crosschip.drawing.svg import to_svg
from crosschip.ir import Builder, Model, Operation
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["", 'say "hi"', "a\\b", "a\\", "<b> & </svg>", "x\ny", "\x00\x1b", "\ud800", "]]>", "名"]

_STRING = r'"(?:[^"\\]|\\.)*"'
_STATEMENT = re.compile(
    rf"""
      digraph\ {_STRING}\ \{{ | \}}
    | \s+(?:node|edge)\ \[.*\];
    | \s+(?:input|op|output)\d+\ \[(?:(?:,\ )?\w+=(?:{_STRING}|\w+))+\];
    | \s+(?:input|op)\d+\ ->\ (?:op|output)\d+\ \[label={_STRING}\];
    """,
    re.VERBOSE,
)


def named(name: str) -> Model:
    b = Builder(name)
    hidden = b.add(Relu, b.input(name, float32(2)), name=name, outputs=[name])
    b.output(name, b.add(Add, hidden, np.ones(2, np.float32)))
    b.output(f"{name}'", b.constant(np.zeros(3, np.float32)))
    return b.build()


def groups_of(model: Model, *labels: str) -> dict[Operation, str]:
    return {o: labels[i % len(labels)] for i, o in enumerate(model.operations)}


def assert_dot(text: str) -> None:
    """Every line is a statement, and every edge joins nodes that are there."""
    lines = text.splitlines()
    for line in lines:
        assert _STATEMENT.fullmatch(line), line
    nodes = set(re.findall(r"^  (\w+\d+) \[", text, re.MULTILINE))
    for source, target in re.findall(r"^  (\w+) -> (\w+) \[", text, re.MULTILINE):
        assert {source, target} <= nodes


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_do_not_break_a_drawing(name: str) -> None:
    model = named(name)
    groups = groups_of(model, name, "other")
    assert_dot(to_dot(model, groups))
    ElementTree.fromstring(to_svg(model, groups))


@given(st.text())
def test_no_name_breaks_a_drawing(name: str) -> None:
    model = named(name)
    groups = groups_of(model, name)
    assert_dot(to_dot(model, groups))
    ElementTree.fromstring(to_svg(model, groups))
    assert to_dot(model, groups).encode()
    assert to_svg(model, groups).encode()


@given(examples(quantized=True))
def test_every_dependency_is_drawn(example: Example) -> None:
    model = example.model
    dot = to_dot(model)
    assert_dot(dot)
    made = {*model.inputs.values(), *model.producers}
    reads = [o for op in model.operations for _, o in op.named_inputs()]
    edges = [o for o in [*reads, *model.outputs.values()] if o in made]
    assert dot.count(" -> ") == len(edges)


@given(examples(quantized=True))
def test_each_operation_is_below_all_that_it_reads_and_on_top_of_none(example: Example) -> None:
    root = ElementTree.fromstring(to_svg(example.model))
    boxes = [box.find(f"{SVG}rect") for box in root.findall(f"{SVG}g")]
    places = [(float(b.get("x", "")), float(b.get("y", ""))) for b in boxes if b is not None]
    model = example.model
    assert len(places) == len(model.inputs) + len(model.operations) + len(model.outputs)
    for i, (x, y) in enumerate(places):
        for left, top in places[:i]:
            assert y != top or abs(x - left) >= 150, "two boxes overlap"
    operands = list(model.inputs.values())
    height = {operand: y for operand, (_, y) in zip(operands, places, strict=False)}
    for operation, (_, y) in zip(model.operations, places[len(operands) :], strict=False):
        assert all(height[o] < y for o in operation.inputs if o in height)
        height.update(dict.fromkeys(operation.outputs, y))


def test_a_drawing_lies_within_its_picture() -> None:
    model = model_of(lambda b, x: tuple(b.add(Relu, x) for _ in range(5)), float32(2), name="wide")
    root = ElementTree.fromstring(to_svg(model, groups_of(model, "cpu", "npu")))
    left, top, width, height = map(float, root.get("viewBox", "").split())
    assert (float(root.get("width", "")), float(root.get("height", ""))) == (width, height)
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("width") == "100%":
            continue
        assert left <= float(rect.get("x", ""))
        assert float(rect.get("x", "")) + float(rect.get("width", "")) <= left + width
        assert top <= float(rect.get("y", ""))
        assert float(rect.get("y", "")) + float(rect.get("height", "")) <= top + height


def test_each_device_has_a_colour_and_a_line_in_the_legend() -> None:
    model = model_of(lambda b, x: b.add(Relu, b.add(Sigmoid, b.add(Relu, x))), float32(2))
    groups = {model.operations[0]: "cpu", model.operations[1]: "npu <2>"}
    colours = colours_of(groups.values())
    assert list(colours) == ["cpu", "npu <2>"]
    assert len(set(colours.values())) == 2
    root = ElementTree.fromstring(to_svg(model, groups))
    fills = [box.find(f"{SVG}rect").get("fill") for box in root.findall(f"{SVG}g")]  # type: ignore[union-attr]  # every box has one
    assert fills == ["white", colours["cpu"], colours["npu <2>"], "white", "white"]
    assert [text.text for text in root.findall(f"{SVG}text")] == ["cpu", "npu <2>"]
    for colour in colours.values():
        assert to_dot(model, groups).count(colour) == 1


def test_there_are_colours_for_any_number_of_devices() -> None:
    labels = [f"device{i}" for i in range(30)]
    assert list(colours_of(labels)) == labels
    assert colours_of(["", "a", "", "a"]) == {"a": colours_of(["a"])["a"]}


def test_a_model_without_operations_can_be_drawn() -> None:
    for model in (model_of(lambda b, x: x, float32(2)), model_of(lambda b: ())):
        assert_dot(to_dot(model))
        ElementTree.fromstring(to_svg(model))
