"""Values that stay where they are: addresses in memory, and the runtime's own count of copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, HostBuffer, Options, Program, Sizing, Support
from crosschip.ir import (
    Array,
    Builder,
    ControlFlow,
    InputError,
    Loop,
    Model,
    Operand,
    Operation,
    Scan,
    TensorType,
    symbol,
)
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.copies import Copied, Tally

SHAPE = (2, 3)
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(SHAPE)
BYTES = X.nbytes
ENGINES = ["onnxruntime", "openvino", "reference"]
CHAINS = [["onnxruntime", "openvino"], ["openvino", "onnxruntime"], ["reference", "openvino"]]


def address(array: Array) -> int:
    return int(array.ctypes.data)


def three(b: Builder, x: Operand) -> Operand:
    return b.add(Neg, b.add(Exp, b.add(Tanh, x)))


def expected(x: Array) -> Array:
    return -np.exp(np.tanh(x))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int]]]:
    """The addresses of what each run of an engine's program reads and makes, in order."""
    from crosschip.devices.onnxruntime.program import OnnxRuntimeProgram
    from crosschip.devices.openvino.program import OpenVinoProgram

    found: list[tuple[list[int], list[int]]] = []

    def watch(program: type[Program]) -> None:
        # OpenVINO's runs are all runs into places.
        for name in ("run_into",) if program is OpenVinoProgram else ("run", "run_into"):
            monkeypatch.setattr(program, name, watched(getattr(program, name)))

    def watched(method: Callable[..., Sequence[Array]]) -> Callable[..., Sequence[Array]]:
        def run(self: Program, inputs: Sequence[Array], *more: Any) -> Sequence[Array]:
            made = method(self, inputs, *more)
            found.append(([address(a) for a in inputs], [address(a) for a in made]))
            return made

        return run

    for program in (OnnxRuntimeProgram, OpenVinoProgram, ReferenceProgram):
        watch(program)
    return found


@pytest.mark.parametrize("devices", CHAINS)
def test_values_stay_where_they_are_between_segments(
    devices: list[str], seen: list[tuple[list[int], list[int]]]
) -> None:
    first, second = devices
    with crosschip.compile(
        model_of(three, float32(*SHAPE)),
        devices,
        placement=crosschip.PlacementOptions(pin={"EXP": second}),
        cache=False,
    ) as compiled:
        assert [segment.device for segment in compiled.placement.segments] == [
            first,
            second,
            first,
        ]
        seen.clear()
        (y,) = compiled.run({"x0": X}).values()
        np.testing.assert_allclose(y, expected(X), rtol=1e-5)
        (one_in, one_out), (two_in, two_out), (three_in, three_out) = seen
        assert one_in == [address(X)]
        assert (one_out, two_out) == (two_in, three_in)
        assert three_out == [address(y)]
        assert compiled.copies.count == 0


@pytest.mark.parametrize("device", ENGINES)
@pytest.mark.parametrize(
    ("given", "copies"),
    [
        (X, 0),
        (np.concatenate([X, X])[2:][::1], 0),
        (np.asfortranarray(X), 1),
        (np.repeat(X, 2, axis=1)[:, ::2], 1),
        (X.astype(">f4"), 1),
        (X.tolist(), 1),
        (HostBuffer(X), 0),
    ],
    ids=["usual", "part", "columns first", "strided", "big-endian", "lists", "buffer"],
)
def test_inputs_are_copied_where_they_must_be(device: str, given: Any, copies: int) -> None:
    with crosschip.compile(
        model_of(three, float32(*SHAPE)), [device], shapes=None, cache=False
    ) as compiled:
        (y,) = compiled.run({"x0": given}).values()
        np.testing.assert_allclose(y, expected(X), rtol=1e-5)
        (y,) = compiled.submit({"x0": given}).result(30).values()
        np.testing.assert_allclose(y, expected(X), rtol=1e-5)
        assert compiled.copies[Copied.INPUT] == Tally(2 * copies, 2 * copies * BYTES)
        assert compiled.copies.count == 2 * copies


def test_an_input_that_is_not_aligned_is_copied() -> None:
    room = np.zeros(BYTES + 1, np.uint8)
    crooked = room[1:].view(np.float32).reshape(SHAPE)
    crooked[...] = X
    with crosschip.compile(model_of(three, float32(*SHAPE)), "reference", cache=False) as compiled:
        np.testing.assert_allclose(compiled(crooked), expected(X), rtol=1e-5)
        assert compiled.copies[Copied.INPUT] == Tally(1, BYTES)


class Aligned(DelegatingDevice):
    def capabilities(self) -> Capabilities:
        return Capabilities(alignment=4096)


def test_what_a_device_wants_aligned_is_copied_and_counted() -> None:
    room = np.zeros(BYTES + 8192, np.uint8)
    start = -address(room) % 4096
    fitting = room[start : start + BYTES].view(np.float32).reshape(SHAPE)
    fitting[...] = X
    with crosschip.compile(model_of(three, float32(*SHAPE)), [Aligned()], cache=False) as compiled:
        compiled(fitting)
        assert compiled.copies.count == 0
        off = room[start + 64 : start + 64 + BYTES].view(np.float32).reshape(SHAPE)
        compiled(off)
        assert compiled.copies[Copied.INPUT] == Tally(1, BYTES)


def test_outputs_that_are_inputs_or_constants_are_copied() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = b.add(Exp, x)
        return y, y, x, b.constant(X)

    with crosschip.compile(model_of(make, float32(*SHAPE)), "reference", cache=False) as compiled:
        outputs = compiled.run({"x0": X})
        assert len({address(array) for array in (*outputs.values(), X)}) == 5
        assert compiled.copies[Copied.OUTPUT] == Tally(3, 3 * BYTES)


@pytest.mark.parametrize("submitted", [False, True])
@pytest.mark.parametrize("device", ENGINES)
def test_outputs_are_written_where_the_caller_wants_them(device: str, submitted: bool) -> None:
    """By the engines themselves, the reference has its own."""
    place = np.zeros(SHAPE, np.float32)
    with crosschip.compile(model_of(three, float32(*SHAPE)), [device], cache=False) as compiled:
        run = compiled.submit if submitted else compiled.run
        for sign in (1, -1, 1):
            made: Any = run({"x0": sign * X}, {"y0": place})
            outputs = made.result(30) if submitted else made
            assert outputs["y0"] is place
            np.testing.assert_allclose(place, expected(sign * X), rtol=1e-5)
        assert compiled.copies.count == (3 if device == "reference" else 0)
        # An output of the next run does not go there.
        kept = place.copy()
        compiled.run({"x0": 2 * X})
        np.testing.assert_array_equal(place, kept)


@pytest.mark.parametrize("device", ENGINES)
@pytest.mark.parametrize(
    "place",
    [
        np.zeros(SHAPE, np.float32, order="F"),
        np.zeros((2, 6), np.float32)[:, ::2],
        np.zeros(BYTES + 1, np.uint8)[1:].view(np.float32).reshape(SHAPE),
    ],
    ids=["columns first", "strided", "not aligned"],
)
def test_places_of_any_layout_are_filled(device: str, place: Array) -> None:
    with crosschip.compile(model_of(three, float32(*SHAPE)), [device], cache=False) as compiled:
        assert compiled.run({"x0": X}, {"y0": place})["y0"] is place
        np.testing.assert_allclose(place, expected(X), rtol=1e-5)
        assert compiled.copies[Copied.OUTPUT] == Tally(1, BYTES)


@pytest.mark.parametrize("device", ENGINES)
def test_an_output_may_be_written_over_an_input(device: str) -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, b.add(Exp, x), x)

    with crosschip.compile(model_of(make, float32(*SHAPE)), [device], cache=False) as compiled:
        both = X.copy()
        compiled.run({"x0": both}, {"y0": both})
        np.testing.assert_allclose(both, np.exp(X) + X, rtol=1e-5)


@pytest.mark.parametrize("device", ENGINES)
def test_places_where_sizes_are_open(device: str) -> None:
    model = model_of(three, float32(symbol("N"), 3))
    with crosschip.compile(model, [device], cache=False) as compiled:
        place = np.zeros(SHAPE, np.float32)
        compiled.run({"x0": X}, {"y0": place})
        np.testing.assert_allclose(place, expected(X), rtol=1e-5)
        with pytest.raises(InputError, match=r"output 'y0' is float32\[2, 3\], which does not fit"):
            compiled.run({"x0": X}, {"y0": np.zeros((3, 3), np.float32)})


@pytest.mark.parametrize("devices", [["openvino", "onnxruntime"]])
def test_places_in_two_segments_and_twice_the_same_value(devices: list[str]) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = b.add(Relu, x)
        return y, b.add(Sigmoid, y), y

    with crosschip.compile(
        model_of(make, float32(*SHAPE)),
        devices,
        placement=crosschip.PlacementOptions(pin={"SIGMOID": "onnxruntime"}),
        cache=False,
    ) as compiled:
        places = {name: np.zeros(SHAPE, np.float32) for name in compiled.outputs}
        compiled.run({"x0": X}, places)
        relu = np.maximum(X, 0)
        np.testing.assert_allclose(places["y0"], relu)
        np.testing.assert_allclose(places["y2"], relu)
        np.testing.assert_allclose(places["y1"], 1 / (1 + np.exp(-relu)), rtol=1e-5)


def read_only() -> Array:
    place = np.zeros(SHAPE, np.float32)
    place.flags.writeable = False
    return place


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (np.zeros((3, 2), np.float32), r"'y0' is float32\[2, 3\], .* the float32\[3, 2\] .*; give"),
        (np.zeros(6, np.float32), r"does not fit the float32\[6\]"),
        (np.zeros(SHAPE, np.float64), r"does not fit the float64\[2, 3\] .* its type and shape"),
        (np.zeros(SHAPE, ">f4"), r"does not fit the >f4"),
        (read_only(), r"'y0' cannot be written into a read-only array; give one that is writable"),
        ([[0.0] * 3] * 2, r"'y0' cannot be written into an object of type list; give an array"),
        (None, r"object of type NoneType"),
    ],
    ids=["shape", "rank", "type", "byte order", "read-only", "list", "none"],
)
def test_places_that_do_not_fit_are_refused_before_anything_runs(place: Any, told: str) -> None:
    class Silent(DelegatingDevice):
        def compile(self, model: Model, options: Options) -> Program:
            return Unrun(model)

    class Unrun(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            raise AssertionError("it ran")

    with crosschip.compile(model_of(three, float32(*SHAPE)), [Silent()], cache=False) as compiled:
        for run in (compiled.run, compiled.submit):
            with pytest.raises(InputError, match=told):
                run({"x0": X}, {"y0": place})


@pytest.mark.slow
@pytest.mark.parametrize("device", ENGINES)
def test_buffers_and_dlpack_both_ways(device: str) -> None:
    """JAX's arrays are read where they are, and JAX reads what comes out where it is."""
    import jax.numpy as jnp

    with crosschip.compile(model_of(three, float32(*SHAPE)), device, cache=False) as model:
        kept = model.run({"x0": jnp.asarray(X)}, keep=["y0"])["y0"]
        assert np.from_dlpack(kept).ctypes.data == address(kept.array())
        np.testing.assert_allclose(jnp.from_dlpack(kept), expected(X), rtol=1e-5)
        again = model.run({"x0": kept})["y0"]
        np.testing.assert_allclose(again, expected(expected(X)), rtol=1e-5)
        assert model.copies.count == 0


@pytest.mark.slow
def test_narrow_floats_of_other_libraries_are_read_where_they_are() -> None:
    import jax.numpy as jnp

    x = jnp.asarray(X, jnp.bfloat16)
    with crosschip.compile(
        model_of(lambda b, x: b.add(Neg, x), _bfloat16()), "reference", cache=False
    ) as compiled:
        (y,) = compiled.run({"x0": x}).values()
        np.testing.assert_array_equal(y, -np.asarray(x))
        assert y.dtype == ml_dtypes.bfloat16
        assert compiled.copies.count == 0


def _bfloat16() -> Any:
    from crosschip.ir import ElementType, TensorType

    return TensorType(ElementType.BFLOAT16, SHAPE)


def test_copies_are_counted_from_many_threads() -> None:
    model = chain(Exp)
    with crosschip.compile(model, "reference", cache=False) as compiled:

        def call(_: int) -> None:
            compiled([0.0, 1.0])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(call, range(200)))
        assert compiled.copies[Copied.INPUT] == Tally(200, 1600)
        assert str(compiled.copies) == (
            "<Copies: input 200 (1600 bytes), between 0 (0 bytes), output 0 (0 bytes)>"
        )


@pytest.mark.parametrize("device", ENGINES)
def test_a_failed_run_leaves_the_model_as_it_was(device: str) -> None:
    """An engine forgets the caller's array."""
    place = np.zeros(SHAPE, np.float32)
    compiled: CompiledModel
    with crosschip.compile(model_of(three, float32(*SHAPE)), device, cache=False) as compiled:
        with pytest.raises(InputError):
            compiled.run({"x0": X.astype(np.float64)}, {"y0": place})
        np.testing.assert_allclose(compiled(X), expected(X), rtol=1e-5)
        np.testing.assert_array_equal(place, 0)


class Leaving(DelegatingDevice):
    """A device that leaves control flow to the runtime."""

    def supports(self, operation: Operation, options: Options) -> Support:
        if isinstance(operation, ControlFlow):
            return Support.no(operation, "", "is left to the runtime")
        return super().supports(operation, options)


class Columns(Leaving):
    """A device whose outputs are in Fortran's order."""

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return ColumnsProgram(model)


class ColumnsProgram(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [np.asfortranarray(made) for made in super().run(inputs)]


class AlignedLeaving(Leaving):
    """A device for which nothing is aligned by chance."""

    def capabilities(self) -> Capabilities:
        return Capabilities(alignment=1 << 20)


def loop(b: Builder, x: Operand, step: Callable[[Builder, Operand], Operand]) -> Operand:
    """A loop, of as many turns as another input says."""
    body = Builder("body")
    body.input("i", ITERATION)
    going = body.input("going", CONDITION)
    made = step(body, body.input("x", x.type))
    body.output("goes_on", going)
    body.output("next", made)
    count = b.input("n", TensorType(ITERATION.element_type, ()))
    return b.insert(Loop.of("loop", count, None, [x], [], body.build()))[0]


def looping(step: Callable[[Builder, Operand], Operand]) -> Model:
    b = Builder("looping")
    b.output("y", loop(b, b.input("x", float32(*SHAPE)), step))
    return b.build()


@pytest.mark.parametrize("submitted", [False, True])
def test_copies_in_bodies_are_counted(submitted: bool) -> None:
    """In each of five turns, the second of two segments in the body needs another layout."""
    devices = [Columns(name="first", declines=["EXP"]), DelegatingDevice(name="second")]
    model = looping(lambda b, x: b.add(Exp, b.add(Neg, x)))
    with crosschip.compile(model, devices, cache=False) as compiled:
        inputs = {"x": X, "n": np.array(5)}
        made = compiled.submit(inputs).result() if submitted else compiled.run(inputs)
        y = X
        for _ in range(5):
            y = np.exp(-y)
        np.testing.assert_allclose(made["y"], y, rtol=1e-5)
        assert compiled.copies[Copied.BETWEEN] == Tally(5, 5 * BYTES)
        assert compiled.copies.count == 5


def test_what_a_body_wants_aligned_is_counted() -> None:
    with crosschip.compile(looping(three), [AlignedLeaving()], cache=False) as compiled:
        compiled.run({"x": X, "n": np.array(3)})
        assert compiled.copies[Copied.INPUT] == Tally(3, 3 * BYTES)
        assert compiled.copies.count == 3


class AlignedFixed(DelegatingDevice):
    def capabilities(self) -> Capabilities:
        return Capabilities(alignment=1 << 20, sizing=Sizing.FIXED)


def test_copies_in_programs_of_profiles_are_counted() -> None:
    """Those are compiled before anything else of the compiled model is there."""
    model, profiles = model_of(three, float32(symbol("N"), 3)), [{"N": 2}]
    with crosschip.compile(
        model, [AlignedFixed()], shapes=crosschip.ShapeOptions(profiles=profiles), cache=False
    ) as compiled:
        compiled(X)
        assert compiled.statistics().segments[0].compiled == 1
        assert compiled.copies[Copied.INPUT] == Tally(1, BYTES)


@pytest.mark.parametrize(("turns", "copies"), [(0, 1), (1, 0), (4, 0)])
def test_control_flow_copies_what_it_hands_on_as_it_was_given(turns: int, copies: int) -> None:
    with crosschip.compile(looping(three), "reference", cache=False) as compiled:
        compiled.run({"x": X, "n": np.array(turns)})
        assert compiled.copies[Copied.BETWEEN] == Tally(copies, copies * BYTES)
        assert compiled.copies.count == copies


@pytest.mark.parametrize(("axis", "copies"), [(0, 0), (1, 3)])
def test_parts_along_other_axes_than_the_first_are_copied(axis: int, copies: int) -> None:
    body = Builder("body")
    part = body.input("part", float32(symbol("M")))
    body.output("y", body.add(Neg, part))
    b = Builder("scanning")
    x = b.input("x", float32(symbol("N"), symbol("M")))
    scan = Scan.of("scan", [], [x], [], body.build(), input_axes=[axis], output_axes=[axis])
    b.output("y", b.insert(scan)[0])
    with crosschip.compile(b.build(), "reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled(X), -X)
        assert compiled.copies[Copied.BETWEEN].count == copies
