"""Profiles: the parts sum up to the whole, and each part bears the names that the user knows."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from tests.modelling import DelegatingDevice, chain, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Profiler, Program, Step
from crosschip.ir import Array, DeviceError, InputError, Model, Operation
from crosschip.ops.standard.unary import Abs, Exp, Neg, Sqrt
from crosschip.runtime.profiling.profile import Profile
from crosschip.runtime.profiling.spans import Span, SpanKind

ENGINES = ("reference", "onnxruntime", "openvino", "xla")
TELLING = ("reference", "onnxruntime", "openvino")
MICROSECOND = 1e-6


def convolutions(name: str = "net", labels: Sequence[str] = ("first", "then", "last")) -> bytes:
    """Two convolutions with an activation between, large enough that they show."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), f"w{index}")
        for index, shape in enumerate([(32, 3, 3, 3), (32, 32, 3, 3)])
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], labels[0], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], labels[1]),
        helper.make_node("Conv", ["b", "w1"], ["y"], labels[2], pads=[1, 1, 1, 1]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 32, 32])
    graph = helper.make_graph(nodes, name, [x], [y], weights)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


LOOP = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[8] x, int64 n, bool go) => (float[8] y) {
      y = Loop(n, go, x) <body = b (int64 i, bool c, float[8] s) => (bool d, float[8] t) {
        d = Identity(c)  u = Sqrt(s)  t = Exp(u) }>
    }"""


def spans(profile: Profile) -> list[Span]:
    return [span for run in profile.runs for span in run.all_spans()]


def check_sums(profile: Profile) -> None:
    """All that is told sums up to the runs; nothing is longer than what it is in."""
    parts = sum(step.seconds for step in profile.steps) + sum(profile.other_seconds.values())
    assert math.isclose(parts, profile.seconds, rel_tol=1e-9)
    whole = sum(run.seconds for run in profile.runs)
    assert math.isclose(whole / len(profile.runs), profile.seconds, rel_tol=1e-9)
    for span in spans(profile):
        assert span.seconds >= 0
        # Engines tell whole microseconds, cut off.
        assert span.own_seconds >= -MICROSECOND * len(span.inside)


@pytest.mark.parametrize("device", ENGINES)
def test_the_parts_sum_up_to_the_whole(device: str) -> None:
    with crosschip.compile(convolutions(), device, cache=False) as compiled:
        x = np.ones((1, 3, 32, 32), np.float32)
        before = compiled.run({"x": x})
        profile = compiled.profile({"x": x}, runs=3)
        check_sums(profile)
        after = compiled.run({"x": x})
    np.testing.assert_array_equal(before["y"], after["y"])
    assert len(profile.runs) == 3
    (segment,) = profile.segments
    assert (segment.device, segment.calls, segment.operations) == (device, 1, 3)
    assert segment.steps == (device in TELLING)
    assert (segment.waiting > 0) == (device == "xla")
    total = sum(seconds for *_, seconds in profile.types)
    assert math.isclose(total, sum(s.seconds for s in profile.steps if s.step), abs_tol=1e-12)


@pytest.mark.parametrize("device", TELLING)
def test_steps_bear_the_names_of_the_model_and_of_the_file(device: str) -> None:
    with crosschip.compile(convolutions(), device, cache=False) as compiled:
        profile = compiled.profile(runs=2)
    told = {operation for step in profile.steps for operation in step.operations}
    assert told == set(compiled.placement.model.operations)
    assert {origin.type for step in profile.steps for origin in step.origins} == {"Conv", "Relu"}
    longest = next(step for step in profile.steps if step.step and "CONV" in step.types)
    assert longest.origins[0].type == "Conv"
    assert longest.calls == 1
    assert {step.device for step in profile.steps} == {device}


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_what_was_fused_is_one_step(device: str) -> None:
    with crosschip.compile(convolutions(), device, cache=False) as compiled:
        steps = compiled.profile(runs=2).steps
    assert "CONV_2D+RELU" in {step.types for step in steps}
    named = Counter(o.name for s in steps if s.types.startswith("CONV_2D") for o in s.operations)
    assert not any(step.types == "RELU" and step.step in ("Relu", "Eltwise") for step in steps)
    assert named.keys() == {operation.name for operation in compiled.placement.model.operations}


@pytest.mark.parametrize("device", TELLING)
def test_a_program_from_the_cache_bears_the_names_of_this_model(
    device: str, tmp_path: Path
) -> None:
    crosschip.compile(convolutions("one", ("p", "q", "r")), device, cache=tmp_path).close()
    with crosschip.compile(convolutions("two"), device, cache=tmp_path) as compiled:
        assert compiled.report.cache == "hit"
        steps = compiled.profile(runs=1).steps
    own = {operation.name for operation in compiled.placement.model.operations}
    assert {operation.name for step in steps for operation in step.operations} == own


@pytest.mark.parametrize("devices", ["reference", "onnxruntime", "openvino,reference"])
@pytest.mark.parametrize("trips", [0, 3])
def test_bodies_count_inside_of_control_flow(devices: str, trips: int) -> None:
    """`onnxruntime` runs the loop whole; the others run its body, for the runtime."""
    # OpenVINO does not tell of layers that take less than a microsecond on average.
    proto = parser.parse_model(LOOP.replace("[8]", "[65536]"))
    x = np.ones(2**16, np.float32)
    inputs = {"x": x, "n": np.array(trips), "go": np.array(True)}
    with crosschip.compile(proto, devices, cache=False) as compiled:
        profile = compiled.profile(inputs, runs=4, warm_up=1)
    check_sums(profile)
    for operator in ("Sqrt", "Exp"):
        steps = [step for step in profile.steps if operator.upper() in step.types]
        # At SSE4.1, the layers of a function are no single kernel, and count one by one.
        layers = 3 if os.environ.get("ONEDNN_MAX_CPU_ISA") == "SSE41" and "Exp" in operator else 1
        assert {step.calls for step in steps} <= {trips, layers * trips}
        assert bool(steps) == bool(trips)
        assert all(operator in {origin.type for origin in step.origins} for step in steps)


@pytest.mark.parametrize("devices", [["onnxruntime", "openvino"]])
def test_each_device_has_its_segments(devices: list[str]) -> None:
    model = chain(Abs, Sqrt, Exp, Neg)
    first, second = devices
    pin = {"ABS": first, "SQRT": second, "EXP": first, "NEG": second}
    with crosschip.compile(
        model, devices, placement=crosschip.PlacementOptions(pin=pin), cache=False
    ) as compiled:
        profile = compiled.profile({"x0": np.ones(2, np.float32)}, runs=2)
    check_sums(profile)
    assert [segment.device for segment in profile.segments] == [first, second] * 2
    for step in profile.steps:
        assert all(pin[operation.type] == step.device for operation in step.operations)


@pytest.mark.parametrize("device", ["xla"])
def test_values_that_leave_a_device_are_copied(device: str) -> None:
    pin = {"ABS": device, "SQRT": "reference", "EXP": device}
    with crosschip.compile(
        chain(Abs, Sqrt, Exp),
        [device, "reference"],
        placement=crosschip.PlacementOptions(pin=pin),
        cache=False,
    ) as compiled:
        profile = compiled.profile({"x0": np.ones(2, np.float32)}, runs=2)
    kinds = Counter(span.kind for span in spans(profile))
    assert kinds[SpanKind.COPY] == 2 * 2, "out of each segment on xla, in each run"
    assert kinds[SpanKind.WAIT] == 2 * 2
    assert kinds[SpanKind.CHECK] == 2
    assert profile.other_seconds["copying"] > 0


def test_an_output_that_is_an_input_is_copied() -> None:
    model = model_of(lambda b, x: (x, b.add(Neg, x)), float32(2))
    with crosschip.compile(model, "reference", cache=False) as compiled:
        profile = compiled.profile(runs=1)
    assert sum(span.kind is SpanKind.COPY for span in spans(profile)) == 1


@pytest.mark.parametrize("device", ENGINES)
def test_nothing_is_left_behind(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with crosschip.compile(convolutions(), device, cache=False) as compiled:
        compiled.profile(runs=1)
        with pytest.raises(InputError):
            compiled.profile({"x": "nothing"})
        assert not list(tmp_path.iterdir())


def test_inputs_are_made_up_if_they_are_left_out() -> None:
    with crosschip.compile(convolutions(), "reference", cache=False) as compiled:
        assert len(compiled.profile(runs=1, warm_up=0).runs) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"runs": 0}, "runs=0"),
        ({"warm_up": -1}, "warm_up=-1"),
        ({"inputs": {}}, "input 'x' is missing"),
        ({"inputs": {"X": np.ones(1)}}, "there is no input 'X' (did you mean 'x'?)"),
    ],
)
def test_what_cannot_be_profiled(given: dict[str, Any], message: str) -> None:
    with crosschip.compile(convolutions(), "reference", cache=False) as compiled:
        with pytest.raises(InputError) as raised:
            compiled.profile(**given)
        assert message in str(raised.value)
    with pytest.raises(InputError, match="has been closed"):
        compiled.profile()


class _Telling(Profiler):
    """A profiler of the tests."""

    def __init__(self, program: Program, operations: Sequence[Operation]) -> None:
        self._program = program
        self._operations = operations
        self.runs = 0
        self.begun = -1
        self.closed = False

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self.runs += 1
        return self._program.run(inputs)

    def begin(self) -> None:
        self.begun = self.runs

    def steps(self) -> Sequence[Sequence[Step]]:
        return [[Step("work", 0.0, self._operations)]] * (self.runs - self.begun)

    def close(self) -> None:
        self.closed = True


class _Device(DelegatingDevice):
    """A device whose profiler is the test's."""

    made: _Telling | None = None
    wrap: Callable[[_Telling], object] = staticmethod(lambda profiler: profiler)

    def compile(self, model: Model, options: Options) -> Program:
        device = self

        class Profiled(ReferenceProgram):
            def profiler(self) -> Any:
                device.made = _Telling(self, model.operations)
                return type(device).wrap(device.made)

        return Profiled(model)


def test_warming_up_does_not_count() -> None:
    device = _Device()
    with crosschip.compile(chain(Abs), [device], cache=False) as compiled:
        profile = compiled.profile(runs=3, warm_up=4)
        assert device.made is not None
        assert (device.made.begun, device.made.runs, device.made.closed) == (4, 7, True)
    (work,) = (step for step in profile.steps if step.step)
    assert (work.step, work.calls, len(profile.runs)) == ("work", 1, 3)


def fails(profiler: _Telling) -> object:
    raise RuntimeError("no counters")


def makes_something(profiler: _Telling) -> object:
    return object()


class _Short(_Telling):
    def steps(self) -> Sequence[Sequence[Step]]:
        return []


@pytest.mark.parametrize(
    ("wrap", "message"),
    [(fails, "RuntimeError: no counters"), (makes_something, "of type object, not a Profiler")],
)
def test_a_profiler_that_cannot_be_made_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    warnings: Callable[[], list[str]],
    wrap: Callable[[_Telling], object],
    message: str,
) -> None:
    monkeypatch.setattr(_Device, "wrap", staticmethod(wrap))
    with crosschip.compile(chain(Abs), [_Device()], cache=False) as compiled:
        profile = compiled.profile(runs=1)
    check_sums(profile)
    assert not profile.segments[0].steps
    assert [step.types for step in profile.steps] == ["ABS"]
    assert any(message in told and "its segments are timed" in told for told in warnings())


def test_a_profiler_that_breaks_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Device, "wrap", staticmethod(lambda p: _Short(p._program, ())))
    with crosschip.compile(chain(Abs), [_Device()], cache=False) as compiled:
        with pytest.raises(DeviceError, match=r"^test: told of 0 runs where there were 2; "):
            compiled.profile(runs=2)
        assert compiled.run({"x0": np.ones(2, np.float32)})


def nested(events: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Complete events of one track with their depths, as viewers find them by their times alone."""
    open_: list[float] = []
    found = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_ and event["ts"] >= open_[-1] - 0.001:
            open_.pop()
        end = event["ts"] + event["dur"]
        assert not open_ or end <= open_[-1] + 2.002, "a step overlaps the end of what it is in"
        found.append((event, len(open_)))
        open_.append(end)
    return found


@pytest.mark.parametrize("devices", ["reference", "onnxruntime", "openvino,reference", "xla"])
def test_the_trace_is_of_the_format(devices: str, tmp_path: Path) -> None:
    proto = parser.parse_model(LOOP)
    inputs = {"x": np.ones(8, np.float32), "n": np.array(3), "go": np.array(True)}
    with crosschip.compile(proto, devices, cache=False) as compiled:
        profile = compiled.profile(inputs, runs=2)
    path = tmp_path / "trace.json"
    profile.write_trace(path)
    read = json.loads(path.read_text("ascii"))
    assert read == profile.trace()
    assert read["displayTimeUnit"] in ("ms", "ns")
    events = read["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(names.values()) >= {"runtime"}
    complete = [event for event in events if event["ph"] == "X"]
    assert len(complete) == len(spans(profile))
    assert len(complete) + len(names) + 1 == len(events)
    for event in complete:
        assert isinstance(event["name"], str)
        assert event["name"]
        assert isinstance(event["ts"], float)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert event["tid"] in names
        assert event["pid"] == 1
    for track in names:
        own = [event for event in complete if event["tid"] == track]
        assert all(depth == 0 for event, depth in nested(own) if event["cat"] == "run")
        if names[track] != "runtime":
            assert all(
                (depth > 0) == (event["cat"] in ("step", "waiting"))
                for event, depth in nested(own)
                if event["dur"]  # what takes no time may stand at the border of its neighbour
            )


def test_a_trace_that_cannot_be_written(tmp_path: Path) -> None:
    with crosschip.compile(chain(Abs), "reference", cache=False) as compiled:
        profile = compiled.profile(runs=1)
    with pytest.raises(InputError, match="cannot be written: "):
        profile.write_trace(tmp_path)


def test_a_profile_in_words() -> None:
    proto = onnx.ModelProto.FromString(convolutions("a model"))
    with crosschip.compile(proto, "reference", cache=False) as compiled:
        profile = compiled.profile(runs=2)
    text = str(profile)
    first, _, rest = text.partition("\n")
    assert first.startswith("a model: ")
    assert first.endswith(" ms a run, mean of 2")
    for title in ("Segments", "Steps", "Operators", "Besides"):
        assert f"\n{title}\n" in rest
    assert "(the rest of segment 0)" in rest
    assert "Conv y" in rest
    assert json.loads(json.dumps(profile.document())) == profile.document()
