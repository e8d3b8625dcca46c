"""Compiled models that compile for each set of shapes, as files: with the programs there were."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, chain, float32, model_of
from tests.runtime.test_control import COUNT
from tests.runtime.test_saving import forged, json_values, parts_of, places_in, put
from tests.runtime.test_shapes import OPEN, Plain, Static, doubled_body, ones

import crosschip
from crosschip.hal import CompileError, Device, Options, Program
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    Error,
    Loop,
    Model,
    ModelFileError,
    Operand,
    UnsupportedError,
    symbol,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul

LONG = 30.0
"""Seconds that no test takes."""


def saved(
    model: Model,
    devices: Sequence[str | Device],
    sizes: Sequence[int],
    strict: bool = False,
    threads: int | None = None,
    **shapes: Any,
) -> bytes:
    """The file of a compiled model that has run with these sizes."""
    with crosschip.compile(
        model,
        devices,
        shapes=crosschip.ShapeOptions(**shapes),
        threads=threads,
        placement=crosschip.PlacementOptions(strict=strict),
        cache=False,
    ) as compiled:
        for size in sizes:
            compiled.run(ones(size))
        return compiled.to_bytes()


def test_programs_so_far_are_loaded_and_others_compiled_when_they_come() -> None:
    content = saved(OPEN, [Static(name="npu")], (2, 3, 2))
    there = Static(name="npu")
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        assert (there.loaded, there.shapes) == ([((3,),), ((2,),)], [])
        for size in (2, 3, 4, 4):
            np.testing.assert_array_equal(loaded.run(ones(size))["y0"], np.ones(size))
        assert (len(there.loaded), there.shapes) == (2, [((4,),)])
        (told,) = loaded.statistics().segments
        assert (told.runs, told.loaded, told.compiled, told.programs) == (4, 2, 1, 3)
        assert list(loaded.placement.all_shape_strategies()) == ["a program a shape, 16 at most"]
        again = loaded.to_bytes()
    assert there.open == 0
    with crosschip.load_compiled(again, devices=[there]):
        assert there.loaded[2:] == [((2,),), ((3,),), ((4,),)]


def test_a_file_of_no_programs_compiles_all_when_they_come(tmp_path: Path) -> None:
    path = tmp_path / "open.chips"
    path.write_bytes(saved(OPEN, [Static(name="npu")], ()))
    there = Static(name="npu")
    with crosschip.load_compiled(path, devices=[there]) as loaded:
        path.unlink()
        np.testing.assert_array_equal(loaded.run(ones(5))["y0"], np.ones(5))
    assert (there.loaded, there.shapes) == ([], [((5,),)])


def test_the_least_recently_used_still_goes_first() -> None:
    content = saved(OPEN, [Static(name="npu")], (2, 3, 4, 3), specializations=2)
    there = Static(name="npu")
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        assert there.loaded == [((4,),), ((3,),)]
        for size in (5, 3):
            loaded.run(ones(size))
        assert there.shapes == [((5,),)]
        loaded.run(ones(4))
        assert there.shapes == [((5,),), ((4,),)]


def test_weights_are_there_for_shapes_that_come_later() -> None:
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model = model_of(lambda b, x: b.add(MatMul, x, b.constant(weights)), float32(symbol("N"), 64))
    with crosschip.compile(model, [Static(name="npu")], cache=False) as compiled:
        content = compiled.to_bytes()
    x = np.random.default_rng(1).standard_normal((7, 64)).astype(np.float32)
    with crosschip.load_compiled(content, devices=[Static(name="npu")]) as loaded:
        np.testing.assert_allclose(loaded(x), x @ weights, rtol=1e-4, atol=1e-5)


def test_buckets_are_padded_to_as_before() -> None:
    content = saved(OPEN, [Static(name="npu")], (3,), buckets={"N": [4, 8]})
    there = Static(name="npu")
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        for size in (1, 4, 6, 9):
            np.testing.assert_array_equal(loaded.run(ones(size))["y0"], np.ones(size))
    assert (there.loaded, there.shapes) == ([((4,),)], [((8,),), ((9,),)])


def test_bodies_have_programs_of_their_own() -> None:
    type_ = float32(symbol("N"))
    b = Builder("looped")
    x, count = b.input("x", type_), b.input("n", COUNT)
    (looped,) = b.insert(Loop.of("loop", count, None, [x], [], doubled_body(type_)))
    b.output("y", b.add(Relu, looped))
    with crosschip.compile(b.build(), [Plain(name="npu")], cache=False) as compiled:
        compiled(np.ones(3, np.float32), np.array(2))
        content = compiled.to_bytes()
    there = Plain(name="npu")
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        assert there.loaded == [((3,),), ((3,),)]
        for size in (3, 2):
            given = np.ones(size, np.float32)
            assert loaded(given, np.array(4)).tolist() == [16] * size
        assert there.shapes == [((2,),), ((2,),)]


def test_elements_that_another_device_has_computed_count_besides_shapes() -> None:
    def build(b: Builder, x: Operand, y: Operand) -> Operand:
        size = b.add(ShapeOf, y)
        return b.add(Reshape, x, b.add(Concat, [size, b.constant(np.array([-1]))], 0))

    def inputs(size: int) -> dict[str, Array]:
        return {"x0": np.arange(12, dtype=np.float32), "x1": np.ones(size, np.float32)}

    model = model_of(build, float32(12), float32(symbol("N")))
    pins = {"SHAPE": "reference", "CONCAT": "reference"}
    devices: list[str | Device] = [Static(name="npu"), "reference"]
    with crosschip.compile(
        model, devices, placement=crosschip.PlacementOptions(pin=pins), cache=False
    ) as compiled:
        for size in (3, 4):
            compiled.run(inputs(size))
        content = compiled.to_bytes()
    there = Static(name="npu")
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        for size in (4, 3, 2):
            assert loaded.run(inputs(size))["y0"].shape == (size, 12 // size)
        assert (len(there.loaded), len(there.shapes)) == (2, 1)


@pytest.mark.parametrize("ran", [(2,), (2, 13)])
def test_devices_behind_take_over_as_before(ran: tuple[int, ...]) -> None:
    """What one had failed to compile is compiled again, by the one behind it, when it comes."""
    content = saved(OPEN, [Static(name="npu", unlucky=13), Static(name="cpu")], ran)
    first, second = Static(name="npu", unlucky=13), Static(name="cpu")
    with crosschip.load_compiled(content, devices=[first, second]) as loaded:
        assert (first.loaded, second.loaded) == ([((2,),)], [])
        for size in (2, 13):
            np.testing.assert_array_equal(loaded.run(ones(size))["y0"], np.ones(size))
    assert (first.shapes, second.shapes) == ([], [((13,),)])
    with pytest.raises(DeviceError, match="needs the device 'cpu'"):
        crosschip.load_compiled(content, devices=[Static(name="npu")])


def test_who_is_bound_stays_bound() -> None:
    devices = [Static(name="npu", unlucky=13), Static(name="cpu")]
    content = saved(OPEN, devices, (), strict=True)
    with (
        crosschip.load_compiled(content, devices=devices[:1]) as loaded,
        pytest.raises(CompileError, match="13 is an unlucky number"),
    ):
        loaded.run(ones(13))


def test_under_a_token(tmp_path: Path) -> None:
    shapes: list[Any] = []
    for word in ("miss", "hit"):
        device = Static(name="npu")
        with crosschip.compile(
            OPEN,
            [device],
            shapes=crosschip.ShapeOptions(profiles=[{"N": 2}, {"N": 3}]),
            cache=crosschip.CacheOptions(location=tmp_path, token="mine"),
        ) as compiled:
            assert compiled.report.cache == word
            for size in (2, 3, 4):
                np.testing.assert_array_equal(compiled.run(ones(size))["y0"], np.ones(size))
        shapes.append((device.loaded, device.shapes))
    assert shapes == [
        ([], [((2,),), ((3,),), ((4,),)]),
        ([((2,),), ((3,),)], [((4,),)]),
    ]


class Forgetful(Static):
    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)
        program.save = lambda: None  # type: ignore[method-assign]
        return program


class Refusing(Static):
    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        raise DeviceError("the format is another one")


def test_a_device_that_does_not_save_is_told() -> None:
    with crosschip.compile(OPEN, [Forgetful(name="npu")], cache=False) as compiled:
        compiled.to_bytes()
        compiled.run(ones(2))
        with pytest.raises(UnsupportedError, match="npu does not save its programs"):
            compiled.to_bytes()


def test_a_device_that_does_not_load_is_told() -> None:
    content = saved(OPEN, [Static(name="npu")], (2,))
    with pytest.raises(DeviceError, match=r"in memory: .*npu: the format is another one"):
        crosschip.load_compiled(content, devices=[Refusing(name="npu")])


def test_programs_are_not_closed_while_they_are_saved() -> None:
    """Another thread runs a shape that drops the program."""
    saving, dropped = threading.Event(), threading.Event()

    class Slow(Static):
        def compile(self, model: Model, options: Options) -> Program:
            program = super().compile(model, options)

            def save() -> bytes:
                saving.set()
                assert dropped.wait(LONG)
                assert self.open == 2, "it was closed"
                return b"saved"

            program.save = save  # type: ignore[method-assign]
            return program

    device = Slow(name="npu")
    files: list[bytes] = []
    with crosschip.compile(
        OPEN, [device], shapes=crosschip.ShapeOptions(specializations=1), cache=False
    ) as compiled:
        compiled.run(ones(2))
        thread = threading.Thread(target=lambda: files.append(compiled.to_bytes()))
        thread.start()
        assert saving.wait(LONG)
        compiled.run(ones(3))
        dropped.set()
        thread.join(LONG)
        assert device.open == 1
    there = Static(name="npu")
    with crosschip.load_compiled(files[0], devices=[there]):
        assert there.loaded == [((2,),)]


GOOD = saved(OPEN, [Static(name="npu")], (2, 3))
PROGRAMS = 2
"""The number of the first part that holds a program of the only segment."""


def with_shapes(change: Any) -> bytes:
    """The file, with something else said of the programs; all checksums hold."""
    header, parts = parts_of(GOOD)
    (segment,) = header["segments"]
    return forged({**header, "segments": [{**segment, "shapes": change(segment["shapes"])}]}, parts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shapes": [[[[2, 2]], []]]}, r"\[2, 2\] is no shape of float32\[N\]"),
        ({"shapes": [[[[-2]], []]]}, r"\[-2\] is no shape"),
        ({"shapes": [[[[1] * 33], []]]}, "33 axes"),
        ({"shapes": [[[], []]]}, "shapes that do not fit it"),
        ({"shapes": [[[[2]], [[2]]]]}, "shapes that do not fit it"),
        ({"shapes": [[[[size]], []] for size in range(17)]}, "it has 17 sets of shapes, over"),
        ({"devices": []}, "its programs are not npu's"),
        ({"devices": ["npu", "other"]}, "does not say that it needs 'other'"),
        ({"buckets": {"N": [4, 2, -1]}}, "buckets"),
        ({"entries": []}, "has 4 parts, which do not fit its header"),
        ({"more": 1}, "not laid out as it should be"),
    ],
    ids=str,
)
def test_programs_of_another_make_are_refused(change: dict[str, Any], message: str) -> None:
    content = with_shapes(lambda about: {**about, **change})
    with pytest.raises(ModelFileError, match=message):
        crosschip.load_compiled(content, devices=[Static(name="npu")])


def test_shapes_without_a_program_are_compiled_when_they_come() -> None:
    there = Static(name="npu")
    content = with_shapes(lambda about: {**about, "shapes": [[[[7]], []], [[[2]], []]]})
    with crosschip.load_compiled(content, devices=[there]) as loaded:
        assert (there.loaded, there.shapes) == ([((2,),)], [])
        np.testing.assert_array_equal(loaded.run(ones(7))["y0"], np.ones(7))


@settings(max_examples=100)
@given(st.data())
def test_any_other_header_is_refused_or_harmless(data: st.DataObject) -> None:
    def change(about: dict[str, Any]) -> dict[str, Any]:
        place = data.draw(st.sampled_from([place for place in places_in(about) if place]))
        changed: dict[str, Any] = put(about, place, data.draw(json_values))
        return changed

    content = with_shapes(change)
    with (
        suppress(Error),
        crosschip.load_compiled(content, devices=[Static(name="npu")]) as loaded,
    ):
        np.testing.assert_array_equal(loaded.run(ones(2))["y0"], np.ones(2))


def test_a_single_program_where_there_are_several_is_refused() -> None:
    header, parts = parts_of(GOOD)
    (segment,) = header["segments"]
    single = {**header, "segments": [{**segment, "shapes": None}]}
    for part in (b"", b"saved", parts[PROGRAMS]):
        content = forged(single, [*parts[:PROGRAMS], part])
        with pytest.raises(ModelFileError, match="for shapes that do not fit it"):
            crosschip.load_compiled(content, devices=[Static(name="npu")])


def test_several_programs_where_there_is_one_are_refused() -> None:
    (several,) = parts_of(GOOD)[0]["segments"]
    header, parts = parts_of(saved(chain(Relu), [DelegatingDevice(name="npu")], ()))
    (segment,) = header["segments"]
    shaped = {**header, "segments": [{**segment, "shapes": several["shapes"]}]}
    content = forged(shaped, [*parts, parts[PROGRAMS]])
    with pytest.raises(ModelFileError, match="for shapes that do not fit it"):
        crosschip.load_compiled(content, devices=[DelegatingDevice(name="npu")])


def test_options_of_devices_are_those_of_the_file() -> None:
    content = saved(OPEN, [Static(name="npu")], (2,), threads=2)
    seen: list[int | None] = []

    class Seeing(Static):
        def compile(self, model: Model, options: Options) -> Program:
            seen.append(options.threads)
            return super().compile(model, options)

    with crosschip.load_compiled(content, devices=[Seeing(name="npu")]) as loaded:
        loaded.run(ones(3))
    assert seen == [2]
