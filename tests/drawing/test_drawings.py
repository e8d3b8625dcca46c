"""DOT and SVG: well-formed whatever the names are, and complete."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing.pictures import SVG, check_picture, page_of
from tests.modelling import float32, model_of
from tests.random_models import Example, examples

from crosschip.drawing.builder import graph_of
from crosschip.drawing.dot import colours_of, to_dot
from crosschip.drawing.graph import Detail, Labels
from crosschip.drawing.layout import arrange
from crosschip.drawing.repeats import Repeat, fold
from crosschip.drawing.svg import to_svg
from crosschip.ir import Builder, ElementType, If, Model, Operand, Operation, TensorType
from crosschip.ir.text import legible
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.joining import Concat

NAMES = [
    "x" * 300,
    "ℵ﷽" * 50,
    "",
    'say "hi"',
    "a\\b",
    "a\\",
    "<b> & </svg>",
    "x\ny",
    "\x00\x1b",
    "\ud800",
    "]]>",
    "名",
]

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
    check_picture(to_svg(model, Labels(groups)))


@given(st.text())
def test_no_name_breaks_a_drawing(name: str) -> None:
    model = named(name)
    groups = groups_of(model, name)
    assert_dot(to_dot(model, groups))
    check_picture(to_svg(model, Labels(groups)))
    assert to_dot(model, groups).encode()
    assert to_svg(model, Labels(groups)).encode()


@given(examples(quantized=True))
def test_every_dependency_is_drawn(example: Example) -> None:
    model = example.model
    dot = to_dot(model)
    assert_dot(dot)
    made = {*model.inputs.values(), *model.producers}
    reads = [o for op in model.operations for _, o in op.named_inputs()]
    edges = [o for o in [*reads, *model.outputs.values()] if o in made]
    assert dot.count(" -> ") == len(edges)


@st.composite
def networks(draw: st.DrawFn) -> Model:
    """Models of chains, joins, repeated blocks, parallel operations and values read far away."""
    random = draw(st.randoms(use_true_random=False))
    b = Builder(draw(st.sampled_from(["net", *NAMES])))
    values = [b.input(name, float32(*sizes)) for name, sizes in (("x", (4, 8)), ("z" * 99, (4, 8)))]
    for _ in range(draw(st.integers(0, 12))):
        kind = random.choice(["chain", "block", "parallel", "join", "far"])
        x = random.choice(values[-4:])
        if kind == "chain":
            for _ in range(random.randint(1, 20)):
                x = b.add(random.choice([Relu, Sigmoid]), x, name=random.choice(NAMES))
            values.append(x)
        elif kind == "block":
            for _ in range(random.randint(2, 8)):
                x = b.add(Add, b.add(Sigmoid, b.add(Relu, x)), b.add(Relu, x))
            values.append(x)
        elif kind == "parallel":
            values += [b.add(Relu, x) for _ in range(random.randint(2, 9))]
        elif kind == "join":
            values.append(b.add(Mul, x, random.choice(values)))
        else:
            values.append(b.add(Add, values[0], x))
    for index, value in enumerate(random.sample(values, random.randint(0, min(9, len(values))))):
        b.output(f"y{index}", value)
    return b.build()


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Model, Labels]:
    """Models with devices, segments and reasons."""
    model = draw(networks() | examples(quantized=True).map(lambda example: example.model))
    random = draw(st.randoms(use_true_random=False))
    devices = ["openvino", "onnxruntime", "chip " + "<&>" * 40][: random.randint(1, 3)]
    groups = {
        o: random.choice(devices) if random.random() < 0.1 else devices[0] for o in model.operations
    }
    numbers: dict[Operation, str] = {}
    for before, operation in zip([None, *model.operations], model.operations, strict=False):
        number = int(numbers[before]) if before else 0
        numbers[operation] = str(
            number + (before is not None and groups[before] != groups[operation])
        )
    return model, Labels(
        groups, numbers, {o: f"{groups[o]}: because \x00" for o in model.operations}
    )


@given(labelled())
def test_nothing_overlaps_or_leaves_the_picture_and_each_operation_is_counted_once(
    drawn: tuple[Model, Labels],
) -> None:
    model, labels = drawn
    root = check_picture(to_svg(model, labels))
    page = page_of(root)
    assert page.right <= 1600
    assert page.bottom <= 2400
    rows = [row for row in root.iter(f"{SVG}g") if row.get("class") == "operations"]
    assert sum(int(row.get("data-count", "")) for row in rows) == len(model.operations)
    shown = Counter[str]()
    fills: dict[str, str | None] = {}
    for row in rows:
        title, rect = row.find(f"{SVG}title"), row.find(f"{SVG}rect")
        assert title is not None
        assert title.text
        assert rect is not None
        device = next(d for d in labels.groups.values() if f"({legible(d)}" in title.text)
        shown[device] += int(row.get("data-count", ""))
        assert fills.setdefault(device, rect.get("fill")) == rect.get("fill")
        assert "because" in title.text
    assert shown == Counter(labels.groups.values())
    assert len(set(fills.values())) == len(fills)


@given(labelled())
def test_transfers_are_drawn_if_and_only_if_there_are_some(drawn: tuple[Model, Labels]) -> None:
    model, labels = drawn
    root = ElementTree.fromstring(to_svg(model, labels))
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "transfer"]
    crossing = any(
        labels.groups[model.producers[operand]] != labels.groups[operation]
        for operation in model.operations
        for operand in filter(None, operation.inputs)
        if operand in model.producers
    )
    assert bool(lines) == crossing


@given(networks())
def test_at_full_detail_each_box_is_below_all_that_it_reads(model: Model) -> None:
    layout = arrange(graph_of(model, Labels(), Detail()))
    for box in layout.boxes:
        for other in layout.boxes:
            if box is not other:
                apart = (
                    box.x + box.width <= other.x
                    or other.x + other.width <= box.x
                    or box.y + box.bottom <= other.y
                    or other.y + other.bottom <= box.y
                )
                assert apart, "two boxes overlap"
    for route in layout.routes:
        if len(route.points) == 2:
            (_, upper), (_, lower) = route.points
            assert upper <= lower


@pytest.mark.parametrize("count", [2, 3, 40])
def test_repeated_blocks_are_drawn_once(count: int) -> None:
    def blocks(b: Builder, x: Operand) -> Operand:
        x = b.add(Sigmoid, x)
        for _ in range(count):
            x = b.add(Add, b.add(Sigmoid, b.add(Relu, x)), b.add(Relu, b.add(Sigmoid, x)))
        return b.add(Relu, x)

    root = ElementTree.fromstring(to_svg(model_of(blocks, float32(2, 3))))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert f"× {count} in a chain, 5 operations each" in texts
    assert texts.count("ADD") == 1
    assert "float32[2, 3]" in texts
    rows = [row for row in root.iter(f"{SVG}g") if row.get("class") == "operations"]
    assert sorted(int(row.get("data-count", "")) for row in rows) == [1, 1, *[count] * 5]


def test_blocks_side_by_side_and_blocks_in_blocks_are_folded() -> None:
    def network(b: Builder, x: Operand) -> Operand:
        for _ in range(4):
            branches = [b.add(Sigmoid, b.add(Tanh, b.add(Relu, x))) for _ in range(3)]
            x = b.add(Add, b.add(Mul, branches[0], branches[1]), branches[2])
        return x

    items = fold(model_of(network, float32(2)).operations, lambda operation: "")
    (outer,) = items
    assert isinstance(outer, Repeat)
    assert (len(outer.blocks), outer.chained) == (4, True)
    inner = outer.items[0]
    assert isinstance(inner, Repeat)
    assert (len(inner.blocks), inner.chained) == (3, False)
    assert [getattr(item, "type", "") for item in outer.items[1:]] == ["MUL", "ADD"]


def test_blocks_on_other_devices_or_of_other_shapes_are_not_alike() -> None:
    def network(b: Builder, x: Operand) -> Operand:
        for _ in range(6):
            x = b.add(Add, b.add(Sigmoid, x), b.add(Relu, x))
        return x

    operations = model_of(network, float32(2)).operations
    assert len(fold(operations, lambda operation: "")) == 1
    assert len(fold(operations, operations.index)) == len(operations)

    def growing(b: Builder, x: Operand) -> Operand:
        for _ in range(6):
            x = b.add(Concat, [b.add(Sigmoid, x), b.add(Relu, x)], 0)
        return x

    operations = model_of(growing, float32(2)).operations
    assert len(fold(operations, lambda operation: "")) == len(operations)
    assert len(fold(operations, lambda operation: "", shapes=False)) == 1


@pytest.mark.slow
def test_a_model_of_any_size_fits_a_screen() -> None:
    def network(b: Builder, x: Operand) -> Operand:
        values = [x]
        for i in range(3000):
            operator = (Relu, Sigmoid, Tanh)[i * i % 7 % 3]
            other = values[-1 - i * i % min(len(values), 9)]
            values.append(b.add(Add, b.add(operator, values[-1]), other) if i % 3 else other)
        return values[-1]

    model = model_of(network, float32(2))
    assert len(model.operations) > 3000
    root = check_picture(to_svg(model, Labels(groups_of(model, "cpu", "npu"))))
    assert page_of(root).right <= 1600
    assert page_of(root).bottom <= 2400
    rows = [row for row in root.iter(f"{SVG}g") if row.get("class") == "operations"]
    assert sum(int(row.get("data-count", "")) for row in rows) == len(model.operations)


def test_bodies_of_control_flow_are_drawn() -> None:
    def branch(operator: type[Operator]) -> Model:
        return model_of(lambda b, x: b.add(operator, x), float32(2), name=operator.type)

    model = model_of(
        lambda b, c, x: b.insert(If.of("if", c, [x], [branch(Sigmoid), branch(Tanh)]))[0],
        TensorType(ElementType.BOOL, ()),
        float32(2),
    )
    root = check_picture(to_svg(model))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"IF", "SIGMOID", "TANH", "then_body", "else_body", "3 operations"} <= set(texts)


def test_each_device_has_a_colour_and_a_line_in_the_legend() -> None:
    model = model_of(lambda b, x: b.add(Relu, b.add(Sigmoid, b.add(Relu, x))), float32(2))
    groups = {model.operations[0]: "cpu", model.operations[1]: "npu <2>"}
    colours = colours_of(groups.values())
    assert list(colours) == ["cpu", "npu <2>"]
    assert len(set(colours.values())) == 2
    root = ElementTree.fromstring(to_svg(model, Labels(groups)))
    rows = [row for row in root.iter(f"{SVG}g") if row.get("class") == "operations"]
    fills = [row.find(f"{SVG}rect").get("fill") for row in rows]  # type: ignore[union-attr]  # every row has one
    assert fills == [colours["cpu"], colours["npu <2>"], "#ffffff"]
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"cpu: 1 operation", "npu <2>: 1 operation"} <= set(texts)
    for colour in colours.values():
        assert to_dot(model, groups).count(colour) == 1


def test_there_are_colours_for_any_number_of_devices() -> None:
    labels = [f"device{i}" for i in range(30)]
    assert list(colours_of(labels)) == labels
    assert colours_of(["", "a", "", "a"]) == {"a": colours_of(["a"])["a"]}


def test_a_model_without_operations_can_be_drawn() -> None:
    for model in (model_of(lambda b, x: x, float32(2)), model_of(lambda b: ())):
        assert_dot(to_dot(model))
        check_picture(to_svg(model))
