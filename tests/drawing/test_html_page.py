"""The interactive page in a real browser: complete, usable, inert to hostile names, and smooth."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.drawing.browser import CHROMIUM, Browser, Page, running_browser
from tests.drawing.test_drawings import labelled
from tests.modelling import float32
from tests.test_html import HOSTILE

import crosschip as cc
from crosschip.drawing.dot import colours_of
from crosschip.drawing.graph import Labels
from crosschip.drawing.html.document import page as html_page
from crosschip.drawing.html.graph_data import GraphData
from crosschip.ir import Builder, ElementType, If, Model, TensorType
from crosschip.ir.text import legible
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.placement.page import page_data
from crosschip.runtime.placement.placement import Placement

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]

CHECK = (Path(__file__).parent / "check_page.js").read_text(encoding="utf-8")
SIZE = 1400, 900


PROBE = """
    const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const pixel = () => {
        probe.drawImage(crosschip.painter.canvas, 0, 0, 4, 4, 0, 0, 1, 1);
        return probe.getImageData(0, 0, 1, 1).data;
    };
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must have no errors and request nothing but its file."""
    page = browser.page()
    page.resize(*SIZE)
    yield page
    assert page.problems == []
    assert all(each.startswith("file://") for each in page.requests)
    assert len(set(page.requests)) <= 1


def shown(page: Page, path: Path, html: str | None, state: str = "") -> Page:
    """Show HTML, which is written to a file, with a state in the address."""
    assert html is not None
    path.write_text(html, encoding="utf-8")
    page.open(f"{path.as_uri()}{state and '#' + state}")
    page.wait("window.crosschip")
    return page


def mixed_model() -> Model:
    """A model with a repeated block, a branch, and operations that go to another device."""
    b = Builder("mixed")
    x = b.input("x", float32(4, 4))
    for index in range(6):
        weights = b.constant(np.eye(4, dtype=np.float32), f"weights{index}")
        y = b.add(Relu, b.add(MatMul, x, weights), name=f"net/layer{index}/relu")
        x = b.add(Add, y, x, name=f"net/layer{index}/add")
    b.output("y", b.add(Tanh, x, name="net/last"))
    return b.build()


def branching_model() -> Model:
    def branch(operator: Any) -> Model:
        inner = Builder("branch")
        z = inner.input("z", float32(2))
        inner.output("out", inner.add(operator, z, name=f"inner {operator.type}"))
        return inner.build()

    b = Builder("branching")
    condition = b.input("c", TensorType(ElementType.BOOL, ()))
    x = b.add(Relu, b.input("x", float32(2)))
    (y,) = b.insert(If.of("choice", condition, [x], [branch(Sigmoid), branch(Tanh)]))
    b.output("y", y)
    return b.build()


@pytest.fixture
def placement() -> Placement:
    options = cc.PlacementOptions(pin={"TANH": "reference"})
    devices = ["onnxruntime", "reference"]
    return cc.explain(mixed_model(), devices, placement=options, cache=False)


def page_of(model: Model, labels: Labels) -> str:
    """The page of a drawing, without reasons."""
    graph = GraphData(model, labels)
    devices = colours_of(labels.groups.values())
    numbers = list(dict.fromkeys(labels.segments.values()))
    segment = {"device": 0, "operations": 0, "shapes": "", "inputs": [], "outputs": []}
    of = [-1] * len(graph.operations)
    data = {
        "version": "",
        "model": "drawing",
        "notes": [],
        "problem": "",
        "devices": [
            {"name": name, "colour": colour, "operations": 1} for name, colour in devices.items()
        ],
        "graph": graph.document(list(devices), numbers),
        "segments": [segment | {"number": number} for number in numbers],
        "decisions": {"verdicts": [], "of": of, "originals": {}, "inFloat": [], "order": []},
        "costs": None,
        "profile": None,
    }
    return html_page("drawing", data)


def test_everything_is_drawn_without_overlaps(browser: Browser, tmp_path: Path) -> None:
    """All boxes open: each operation is shown, in its block, and each value has its lines."""
    page = browser.page()
    page.resize(*SIZE)

    @settings(max_examples=30)
    @given(labelled())
    def check(drawn: tuple[Model, Labels]) -> None:
        model, labels = drawn
        shown(page, tmp_path / "page.html", page_of(model, labels))
        assert page.evaluate(CHECK) == []
        count = page.evaluate("crosschip.graph.operations.length")
        assert count == len(model.operations)

    check()
    assert page.problems == []


def test_bodies_of_control_flow_are_blocks(page: Page, tmp_path: Path) -> None:
    placement = cc.explain(branching_model(), ["reference"], cache=False)
    shown(page, tmp_path / "page.html", placement.to_html())
    assert page.evaluate(CHECK) == []
    kinds = page.evaluate("[...crosschip.graph.boxes.values()].map(box => box.kind)")
    assert kinds.count("control") == 1
    assert kinds.count("body") == 2
    types = page.evaluate("crosschip.graph.operations.map(o => o.type)")
    assert sorted(types) == ["IF", "RELU", "SIGMOID", "TANH"]


def point_of(page: Page, expression: str) -> tuple[float, float]:
    """The point in the window at the head of a box."""
    x, y = page.evaluate(
        f"""(() => {{
            const box = {expression}, {{ x, y }} = box.position(), view = crosschip.view;
            const area = view.canvas.getBoundingClientRect();
            return [area.left + view.x + (x + 12) * view.scale,
                area.top + view.y + (y + 8) * view.scale];
        }})()"""
    )
    return x, y


def test_a_click_shows_the_reasons_of_all_devices(
    page: Page, tmp_path: Path, placement: Placement
) -> None:
    shown(page, tmp_path / "page.html", placement.to_html(), "open=all")
    for number, decision in [(0, placement.decisions[0]), (-1, placement.decisions[-1])]:
        page.click(*point_of(page, f"crosschip.graph.operations.at({number}).box"))
        text = page.evaluate("document.getElementById('details').innerText")
        assert decision.type in text
        assert decision.name in text
        assert f"{decision.device}" in text
        for device, reason in decision.reasons.items():
            assert device in text
            assert reason in text
        for operand in decision.operation.outputs:
            assert str(operand.type) in text
    assert "TANH: pinned to reference by 'TANH'" in text
    assert page.evaluate("crosschip.state.selected.operation.type") == "TANH"


def test_a_click_opens_and_closes_a_block(page: Page, tmp_path: Path, placement: Placement) -> None:
    shown(page, tmp_path / "page.html", placement.to_html(), "open=none")
    block = "crosschip.graph.root.children.find(box => box.isBlock)"
    assert not page.evaluate(f"{block}.open")
    page.click(*point_of(page, block))
    assert page.evaluate(f"{block}.open")
    assert "open" in page.evaluate("location.hash")
    assert "RELU" in page.evaluate("document.getElementById('details').innerText")
    page.click(*point_of(page, block))
    assert not page.evaluate(f"{block}.open")


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("relu", lambda d: d.type == "RELU"),
        ("layer3 add", lambda d: "layer3" in d.name and d.type == "ADD"),
        ("device:reference", lambda d: d.device == "reference"),
        ("reason:pinned", lambda d: any("pinned" in r for r in d.reasons.values())),
        ("nothing-like-this", lambda d: False),
    ],
)
def test_the_search_narrows(
    page: Page, tmp_path: Path, placement: Placement, text: str, matches: Any
) -> None:
    shown(page, tmp_path / "page.html", placement.to_html(), "open=none")
    page.press("/")
    page.send("Input.insertText", text=text)
    page.settle()
    wanted = sorted(d.name for d in placement.decisions if matches(d))
    rows = page.evaluate(
        "[...document.querySelectorAll('#results .name')].map(row => row.textContent)"
    )
    assert sorted(rows) == wanted
    assert page.evaluate("document.getElementById('count').textContent") == f"{len(wanted)} found"
    assert page.evaluate("crosschip.graph.root.hits") == len(wanted)
    if wanted:
        page.press("Enter")
        assert page.evaluate("crosschip.state.selected.operation.name") in wanted
        assert page.evaluate("shownBox(crosschip.state.selected) === crosschip.state.selected")
    page.press("Escape")
    assert page.evaluate("document.getElementById('results').hidden")


def test_the_address_holds_the_state(page: Page, tmp_path: Path, placement: Placement) -> None:
    """What was moved, opened, searched and selected is the same where the address is opened."""
    shown(page, tmp_path / "page.html", placement.to_html())
    page.evaluate("crosschip.openAll(true)")
    page.evaluate("crosschip.goTo(crosschip.graph.operations[4].box)")
    page.press("/")
    page.send("Input.insertText", text="layer1 & 100%")
    page.evaluate("crosschip.view.zoom(1.5); crosschip.view.move(31, -17)")
    page.wait("location.hash.includes('view=')")
    state = """[crosschip.state.selected.id, document.getElementById("find").value,
        [...crosschip.graph.boxes.values()].filter(box => box.open).map(box => box.id)]"""
    view = "[crosschip.view.x, crosschip.view.y, crosschip.view.scale]"
    before, at = page.evaluate(state), page.evaluate(view)
    address = page.evaluate("location.href")
    page.send("Page.reload")
    page.wait("window.crosschip && document.readyState === 'complete'")
    page.settle()
    assert (page.evaluate("location.href"), page.evaluate(state)) == (address, before)
    assert page.evaluate(view) == pytest.approx(at, abs=0.1)
    page.evaluate("location.hash = 'select=%ZZ&view=1,x&open=b99999&find'")
    page.settle()
    assert page.evaluate("crosschip.state.selected") is None


def test_keys_move_select_and_open(page: Page, tmp_path: Path, placement: Placement) -> None:
    shown(page, tmp_path / "page.html", placement.to_html(), "open=none")
    page.evaluate("document.getElementById('graph').focus()")
    seen = set()
    for _ in range(8):
        page.press("ArrowDown")
        seen.add(page.evaluate("crosschip.state.selected.id"))
        if page.evaluate("crosschip.state.selected.isBlock && !crosschip.state.selected.open"):
            page.press("Enter")
            assert page.evaluate("crosschip.state.selected.open")
    assert len(seen) >= 5
    assert page.evaluate("document.getElementById('status').textContent")
    scale = page.evaluate("crosschip.view.scale")
    page.press("+")
    assert page.evaluate("crosschip.view.scale") > scale
    page.press("f")
    assert page.evaluate("crosschip.view.isFitted")
    page.press("Escape")
    assert page.evaluate("crosschip.state.selected") is None


def test_hostile_names_are_shown_and_do_nothing(page: Page, tmp_path: Path) -> None:
    name = "</script><script>window.hacked = 1</script><img src=x onerror=window.hacked=2>"
    b = Builder(HOSTILE)
    x = b.input(f"in {name}", float32(2, 3))
    b.output(f"out {HOSTILE}", b.add(Sigmoid, b.add(Relu, x, name=f"relu {name}")))
    placement = cc.explain(b.build(), ["onnxruntime", "reference"], cache=False)
    shown(page, tmp_path / "page.html", placement.to_html(), "open=all")
    title = page.evaluate("document.getElementById('title').textContent")
    assert title == legible(HOSTILE) == page.evaluate("document.title")
    for number in range(2):
        page.click(*point_of(page, f"crosschip.graph.operations[{number}].box"))
    page.press("/")
    page.send("Input.insertText", text="<script>")
    page.settle()
    assert f"relu {name}" in page.evaluate("document.getElementById('results').textContent")
    page.press("Enter")
    assert f"relu {name}" in page.evaluate("document.getElementById('details').textContent")
    x_, y_ = point_of(page, "crosschip.graph.operations[0].box")
    page.mouse("mouseMoved", x_, y_)
    assert f"relu {name}" in page.evaluate("document.getElementById('tip').textContent")
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('script, img, iframe').length") == 2


def test_nothing_can_be_fetched(browser: Browser, tmp_path: Path, placement: Placement) -> None:
    """The page's policy stops requests even if a script tried them."""
    page = shown(browser.page(), tmp_path / "page.html", placement.to_html())
    attempts = """Promise.all([
        fetch('https://example.org/').then(() => 'fetched', () => 'stopped'),
        new Promise(done => { const image = new Image(); image.onload = () => done('loaded');
            image.onerror = () => done('stopped'); image.src = 'https://example.org/x.png'; }),
    ])"""
    assert page.evaluate(attempts) == ["stopped", "stopped"]
    assert any("Content Security Policy" in problem for problem in page.problems)


def test_the_time_line_and_measured_times(page: Page, tmp_path: Path) -> None:
    with cc.compile(mixed_model(), ["onnxruntime", "reference"], cache=False) as compiled:
        profile = compiled.profile(runs=3)
        html = compiled.placement.to_html(profile=profile)
    shown(page, tmp_path / "page.html", html)
    data = page.evaluate("crosschip.graph.data.profile")
    assert data["seconds"] == pytest.approx(profile.seconds)
    measured = page.evaluate("crosschip.graph.operations.map(o => [o.name, o.seconds])")
    steps = [s for s in profile.steps if s.step and s.operations]
    assert sum(s for _, s in measured) == pytest.approx(sum(step.seconds for step in steps))
    tracks = page.evaluate("crosschip.timeline.tracks.map(track => track.name)")
    assert {"runtime", "onnxruntime"} <= set(tracks)
    assert "mean of 3" in page.evaluate("document.getElementById('runTitle').textContent")
    widest = page.evaluate(
        """(() => {
            const { timeline } = crosschip, area = timeline.canvas.getBoundingClientRect();
            const steps = timeline.spans.filter(span => span.operations.length);
            const span = steps.sort((a, b) => b.seconds - a.seconds)[0];
            const width = area.width - LABELS, unit = width / timeline.run.shown;
            return [area.left + LABELS + (span.start + span.seconds / 2) * unit,
                area.top + timeline.top.get(span.track) + (span.depth + 0.5) * TRACK_ROW,
                span.operations];
        })()"""
    )
    page.click(widest[0], widest[1])
    assert page.evaluate("crosschip.state.selected.operation.index") in widest[2]
    page.mouse("mouseWheel", widest[0], widest[1], deltaX=0, deltaY=-300)
    page.wait("crosschip.timeline.end - crosschip.timeline.start < crosschip.timeline.run.shown")


def test_costs_here_and_elsewhere(page: Page, tmp_path: Path, placement: Placement) -> None:
    """Estimates are marked; differences have a sign; transfers have their bytes and time."""
    data = page_data(placement)
    names = data["graph"]["operations"]["names"]
    block = {
        "operations": list(range(len(names))),
        "device": "onnxruntime",
        "seconds": 1.42e-3,
        "uncertainty": 2e-5,
        "estimated": True,
        "alternatives": [{"device": "reference", "seconds": 6.1e-4, "transfers": 3}],
    }
    transfer = {"operand": "x", "source": "host", "destination": "onnxruntime", "bytes": 64_000}
    candidate: dict[str, Any] = {
        "name": "onnxruntime",
        "predicted_seconds": 2e-3,
        "seconds": None,
        "segments": 1,
    }
    candidate["reason"] = "there was no time"
    data["costs"] = {
        "blocks": [block],
        "transfers": [transfer | {"seconds": 9e-4, "value": 0}],
        "launches": {"onnxruntime": 3e-6},
        "memory": {"onnxruntime": 5_000_000},
        "predicted": 1.5e-3,
        "candidates": [candidate],
    }
    shown(page, tmp_path / "page.html", html_page("costs", data), "open=all")
    summary = page.evaluate("document.getElementById('details').innerText")
    for text in ("1.50 ms", "64.0 kB", "900 µs", "2.00 ms", "3.00 µs", "5.00 MB", "was no time"):
        assert text in summary
    page.evaluate("crosschip.goTo(crosschip.graph.operations[0].box)")
    details = page.evaluate("document.getElementById('details').innerText")
    for text in ("1.42 ms ± 20.0 µs (estimated)", "+610 µs", "+3"):
        assert text in details


def test_dark_and_light_and_paper(page: Page, tmp_path: Path, placement: Placement) -> None:
    shown(page, tmp_path / "page.html", placement.to_html())
    corner = f"(() => {{ {PROBE} return [...pixel()].slice(0, 3); }})()"
    assert page.evaluate(corner) == [255, 255, 255]
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.send("Emulation.setEmulatedMedia", features=dark)
    page.settle()
    assert max(page.evaluate(corner)) < 50
    printed = base64.b64decode(page.send("Page.printToPDF", printBackground=True)["data"])
    assert printed.startswith(b"%PDF")
    assert len(printed) > 10_000


def long_model(count: int) -> Model:
    random = np.random.default_rng(1)
    b = Builder(f"long{count}")
    values = [b.input("x", float32(4, 8))]
    for index in range(count):
        x = values[-int(random.integers(1, 4)) :][0]
        operator = [Relu, Sigmoid, Add][random.integers(3)]
        operands = (x, values[-1]) if operator is Add else (x,)
        values.append(b.add(operator, *operands, name=f"part{index // 50}/{index}"))
    b.output("y", values[-1])
    for index, value in enumerate(values[-9:-1]):
        b.output(f"y{index}", value)
    return b.build()


def test_values_that_are_read_in_several_columns(page: Page, tmp_path: Path) -> None:
    """A long graph continues in columns; lines to several boxes in one are led around all boxes."""
    b = Builder("columns")
    first = x = b.input("x", float32(4, 8))
    mask = b.add(Sigmoid, first)
    operators = [Relu, Tanh, Sigmoid]
    for index in range(30):
        for step in range(index % 5 + 1):
            x = b.add(operators[(index * 7 + step * step) % 3], b.add(Add, x, mask))
        x = b.add(Add, x, first)
    b.output("y", x)
    for model in (b.build(), long_model(300)):
        shown(page, tmp_path / "page.html", page_of(model, Labels()))
        assert page.evaluate(CHECK) == []


FRAMES = """(async () => {
    const { view } = crosschip, times = [];
    PROBE
    for (let index = 0; index < 100; index++) {
        const start = performance.now();
        if (index % 2) view.zoom(index % 40 < 20 ? 1.08 : 1 / 1.08, 600, 400);
        else view.move(index % 60 < 30 ? 12 : -12, 7);
        view.drawNow();
        pixel(); // waits until the frame is painted
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[50];
})()""".replace("PROBE", PROBE)


def test_two_thousand_operations_stay_smooth(page: Page, tmp_path: Path) -> None:
    """All blocks open, a frame is painted, to the last pixel, within 16 ms (median)."""
    model = long_model(2000)
    groups = {o: "chip" if i % 50 else "other" for i, o in enumerate(model.operations)}
    shown(page, tmp_path / "page.html", page_of(model, Labels(groups)), "open=all")
    assert page.evaluate("crosschip.graph.operations.every(o => shownBox(o.box) === o.box)")
    milliseconds = page.evaluate(FRAMES)
    assert milliseconds < 16
    page.evaluate("crosschip.view.zoom(12, 600, 400)")
    assert page.evaluate(FRAMES) < 16


def test_ten_thousand_operations_open_closed(page: Page, tmp_path: Path) -> None:
    model = long_model(10_000)
    shown(page, tmp_path / "page.html", page_of(model, Labels()))
    all_boxes = "[...crosschip.graph.boxes.values()]"
    boxes = page.evaluate(f"{all_boxes}.filter(b => b.parent && shownBox(b) === b).length")
    assert 3 <= boxes <= 61
    page.press("/")
    page.send("Input.insertText", text="part199/9999")
    page.press("Enter")
    assert page.evaluate("crosschip.state.selected.operation.name") == "part199/9999"
    assert page.evaluate(FRAMES) < 16


def test_a_page_is_returned_or_written(placement: Placement, tmp_path: Path) -> None:
    path = tmp_path / "placement.html"
    assert placement.to_html(path) is None
    assert path.read_text(encoding="utf-8") == placement.to_html()
    with pytest.raises(cc.InputError, match="cannot be written"):
        placement.to_html(tmp_path / "missing" / "page.html")


def test_the_data_is_json(placement: Placement) -> None:
    data = json.loads(json.dumps(page_data(placement)))
    verdicts = data["decisions"]["verdicts"]
    for number, decision in zip(data["decisions"]["of"], placement.decisions, strict=False):
        texts = {each["device"]: each["text"] for each in verdicts[number]}
        assert texts == dict(decision.reasons)
