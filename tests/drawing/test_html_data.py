"""The data of the interactive page: complete, in an order without cycles, and safe in HTML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drawing.test_drawings import NAMES, labelled, named, networks
from tests.modelling import float32
from tests.random_models import Example, examples

from crosschip.drawing.graph import Labels
from crosschip.drawing.html.document import page
from crosschip.drawing.html.graph_data import GraphData
from crosschip.drawing.html.hierarchy import Block, blocks_of
from crosschip.ir import Builder, Model, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.arithmetic import Add


def flat(items: Sequence[Block | Operation]) -> list[Operation]:
    """The operations in blocks, without those of bodies, in order."""
    operations: list[Operation] = []
    for item in items:
        if isinstance(item, Operation):
            operations.append(item)
        elif item.operation is not None:
            operations.append(item.operation)
        else:
            operations += flat(item.items)
    return operations


def levels(items: Sequence[Block | Operation]) -> list[Sequence[Block | Operation]]:
    return [items, *(inner for b in items if isinstance(b, Block) for inner in levels(b.items))]


@given(labelled())
def test_blocks_hold_each_operation_once_in_an_executable_order(
    drawn: tuple[Model, Labels],
) -> None:
    model, labels = drawn
    blocks = blocks_of(model, labels)
    operations = flat(blocks)
    assert sorted(map(id, operations)) == sorted(map(id, model.operations))
    computed = set(model.inputs.values())
    for operation in operations:
        assert all(o is None or o.is_constant or o in computed for o in operation.inputs)
        computed |= set(operation.outputs)
    assert max(map(len, levels(blocks))) <= 40


@given(examples(quantized=True))
def test_data_names_all_operands_and_their_readers(example: Example) -> None:
    model = example.model
    graph = GraphData(model, Labels())
    data = json.loads(json.dumps(graph.document([], [])))
    columns, values = data["operations"], data["values"]
    assert len({len(column) for column in columns.values()}) == 1
    assert graph.operations == list(flat(blocks_of(model, Labels())))
    for number, operation in enumerate(graph.operations):
        shown = {values["names"][v] for _, v in columns["inputs"][number] if isinstance(v, int)}
        named = {o.name for s, o in operation.named_inputs() if operation.symbol(s, o) is None}
        assert shown == named
        types = [values["typeTexts"][values["types"][v]] for v in columns["outputs"][number]]
        assert types == [str(operand.type) for operand in operation.outputs]


def test_long_models_are_nested_and_segments_and_repeats_are_blocks() -> None:
    b = Builder("long")
    x = b.input("x", float32(4))
    for index in range(3000):
        x = b.add(Sigmoid if index % 7 == 3 else Relu, x, name=f"net/layer{index // 100}/op{index}")
        if index % 10 == 9:
            x = b.add(Add, x, x)
    b.output("y", x)
    model = b.build()
    segments = {o: str(i // 1000) for i, o in enumerate(model.operations)}
    blocks = blocks_of(model, Labels(segments=segments))
    assert [block.title for block in blocks if isinstance(block, Block)] == [
        "segment 0",
        "segment 1",
        "segment 2",
        "segment 3",
    ]
    kinds = {
        item.kind.value for level in levels(blocks) for item in level if isinstance(item, Block)
    }
    assert kinds >= {"segment", "repeat", "copy"}
    assert max(map(len, levels(blocks))) <= 40


class Elements(HTMLParser):
    """The elements of a page, and the text in its scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name == "src" for name, _ in attributes)
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1] if self.tags else "", []).append(data)


def data_of(html: str) -> Any:
    """The data in a page."""
    return json.loads("".join(Elements(html).texts["script"]).partition("}\n")[0] + "}")


@given(st.text() | st.sampled_from([*NAMES, "</script><script>alert(1)</script>", "{{script}}"]))
def test_no_name_ends_the_data_or_adds_an_element(name: str) -> None:
    model = named(name)
    graph = GraphData(model, Labels())
    usual = Elements(page("usual", {}))
    elements = Elements(page(name, {"graph": graph.document([], []), "name": name}))
    assert elements.tags == usual.tags
    data = json.loads(elements.texts["script"][0])
    assert data["name"] == name
    assert data["graph"]["blocks"][0]["title"] == (GraphData(model, Labels())._blocks[0]["title"])


def test_the_policy_admits_no_request_and_one_script() -> None:
    html = page("model", {})
    assert "default-src 'none'" in html
    assert html.count("script-src 'sha256-") == 1
    for foreign in ("http://", "https://", "//cdn", "@import", "url("):
        assert foreign not in html.replace("http://www.w3.org", "")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        page("model", {"seconds": value})


@given(networks())
def test_bodies_and_levels_are_numbered_like_the_model(model: Model) -> None:
    graph = GraphData(model, Labels())
    assert set(graph.number) == set(walk_operations(model))
