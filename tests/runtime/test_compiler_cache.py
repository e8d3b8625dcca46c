"""Compiling with a cache: what is kept, what is not used, and many processes at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.modelling import DelegatingDevice, at_once, chain, close, outputs_of

import crosschip
from crosschip.hal import Capabilities, Device, Options, Program
from crosschip.ir import (
    Array,
    CacheError,
    InputError,
    Model,
    ModelFileError,
)
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.options import CacheOptions

Warnings = Callable[[], list[str]]
x = {"x0": np.array([-1, 0.5], np.float32)}


def compile(model: Model, devices: Sequence[str | Device], **more: Any) -> crosschip.CompiledModel:
    return crosschip.compile(model, devices, **{"cache": False, **more})


def test_the_second_time_nothing_is_compiled(tmp_path: Path) -> None:
    reports = []
    for _ in range(2):
        device = DelegatingDevice(name="npu")
        with compile(chain(Relu, Tanh), [device], cache=tmp_path) as model:
            close(model.run(x)["y0"], outputs_of(chain(Relu, Tanh), x)["y0"])
            reports.append((model.report.cache, len(device.compiled)))
    assert reports == [("miss", 1), ("hit", 0)]
    (listed,) = Cache(tmp_path).listing()
    assert listed.entry is not None
    assert (listed.entry.device, listed.entry.device_version) == ("npu", "1.0")
    assert (listed.entry.model, listed.entry.operations) == ("net.0", 2)


def test_a_hit_is_when_every_program_was_there(tmp_path: Path) -> None:
    def words(declined: str) -> str:
        devices = [DelegatingDevice(name="a", declines=[declined]), DelegatingDevice(name="b")]
        with compile(chain(Relu, Tanh, Sigmoid), devices, cache=tmp_path) as model:
            return model.report.cache

    assert [words("TANH"), words("TANH"), words("SIGMOID"), words("SIGMOID")] == [
        "miss",
        "hit",
        "miss",
        "hit",
    ]


def test_equal_parts_of_a_model_share_an_entry(tmp_path: Path) -> None:
    model = chain(Relu, Tanh, Relu, Tanh, Relu)
    for word in ("miss", "hit"):
        devices = [DelegatingDevice(name="a", declines=["TANH"]), DelegatingDevice(name="b")]
        with compile(model, devices, cache=tmp_path) as compiled:
            assert len(compiled.placement.segments) == 5
            assert compiled.report.cache == word
            close(compiled.run(x)["y0"], outputs_of(model, x)["y0"])
    assert [listed.problem for listed in Cache(tmp_path).listing()] == ["", ""]


class Forgetful(DelegatingDevice):
    """Cannot save programs."""

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)

        class Unsaved(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

        return Unsaved()


def test_a_device_that_does_not_save_needs_no_cache(tmp_path: Path) -> None:
    for _ in range(2):
        with compile(chain(Relu), [Forgetful()], cache=tmp_path) as model:
            assert model.report.cache == "off"
    assert not list(tmp_path.glob("*.chip"))


class Unloading(DelegatingDevice):
    """Cannot load what it saved, in a way that the contract does not foresee."""

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        raise ZeroDivisionError("saved by somebody else")


def test_what_a_device_does_not_load_is_compiled_again(tmp_path: Path, warnings: Warnings) -> None:
    for _ in range(2):
        with compile(chain(Relu), [Unloading()], cache=tmp_path) as model:
            assert model.run(x)["y0"].tolist() == [0, 0.5]
            assert model.report.cache == "miss"
    (warning,) = warnings()
    assert "saved by somebody else; compiling again" in warning


class Taking(DelegatingDevice):
    """Tells what it is given to load: large, as it saves more than there is."""

    given: type[object] | None = None
    views = False

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), loads_views=self.views)

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)

        class Large(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

            def save(self) -> bytes:
                return (program.save() or b"") + bytes(2**21)

        return Large()

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> Program:
        self.given = type(saved)
        return super().load(bytes(saved[: -(2**21)]), model, options)


@pytest.mark.parametrize(("views", "given"), [(False, bytes), (True, memoryview)])
def test_a_device_gets_a_view_where_it_says_that_it_takes_one(
    views: bool, given: type[object], tmp_path: Path
) -> None:
    device = Taking()
    device.views = views
    compile(chain(Relu), [device], cache=tmp_path).close()
    assert device.given is None
    with compile(chain(Relu), [device], cache=tmp_path) as model:
        assert model.run(x)["y0"].tolist() == [0, 0.5]
        assert model.report.cache == "hit"
    assert device.given is given


class Unsaving(DelegatingDevice):
    """Fails when it saves."""

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)

        class Failing(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

            def save(self) -> bytes:
                raise RuntimeError("no room for it")

        return Failing()


def test_a_program_that_cannot_be_saved_runs(tmp_path: Path, warnings: Warnings) -> None:
    with compile(chain(Relu), [Unsaving(name="npu")], cache=tmp_path) as model:
        assert model.run(x)["y0"].tolist() == [0, 0.5]
        assert model.report.cache == "off"
    assert warnings() == ["npu: failed while saving a program: RuntimeError: no room for it"]


class SavingLater(DelegatingDevice):
    """Makes the bytes of its programs when they are asked for, in some way."""

    def __init__(self, make: Callable[[], list[bytes]] | None = None) -> None:
        super().__init__(name="npu")
        self.make = make
        self.done = threading.Event()

    def compile(self, model: Model, options: Options) -> Program:
        program, device = super().compile(model, options), self
        content = program.save()
        assert content is not None

        parts = [content[:3], b"", content[3:]]

        class LazyPlacement(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

            def saving(self) -> Any:
                return device.make or self.late

            def late(self) -> list[bytes]:
                device.done.wait()
                return parts

            def close(self) -> None:
                device.done.set()

        return LazyPlacement()


def test_a_program_may_be_saved_when_it_is_closed(tmp_path: Path, warnings: Warnings) -> None:
    """And nobody waits for it: its bytes are there only once it is closed."""
    for word in ("miss", "hit"):
        with compile(chain(Relu), [SavingLater()], cache=tmp_path) as model:
            assert model.run(x)["y0"].tolist() == [0, 0.5]
            assert model.report.cache == word
    assert warnings() == []


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: 1 // 0, "npu: failed while saving a program: ZeroDivisionError"),
        (lambda: "text", "npu: saved a program as an object of type str, not as a list of bytes"),
        (lambda: [b"", 7], "npu: saved a part of a program as an object of type int, not as bytes"),
        (lambda: None, ""),
    ],
)
def test_what_fails_when_it_is_saved_later_is_compiled_again(
    make: Any, told: str, tmp_path: Path, warnings: Warnings
) -> None:
    for _ in range(2):
        with compile(chain(Relu), [SavingLater(make)], cache=tmp_path) as model:
            assert model.run(x)["y0"].tolist() == [0, 0.5]
            assert model.report.cache == "miss"
    background_writer.wait()
    said = warnings()
    assert len(said) == (2 if told else 0)
    assert all(told in warning for warning in said)


def test_what_cannot_be_called_saves_nothing(tmp_path: Path, warnings: Warnings) -> None:
    junk: Any = 7
    with compile(chain(Relu), [SavingLater(junk)], cache=tmp_path) as model:
        assert model.run(x)["y0"].tolist() == [0, 0.5]
        assert model.report.cache == "off"
    (warning,) = warnings()
    assert "npu: saves a program with an object of type int, which cannot be called" in warning


@pytest.mark.parametrize("damage", ["flip", "cut", "append", "empty"])
def test_a_damaged_entry_is_one_warning_and_the_right_answer(
    tmp_path: Path, warnings: Warnings, damage: str
) -> None:
    def run() -> str:
        with compile(chain(Relu, Tanh), [DelegatingDevice()], cache=tmp_path) as model:
            close(model.run(x)["y0"], outputs_of(chain(Relu, Tanh), x)["y0"])
            return model.report.cache

    assert run() == "miss"
    (path,) = tmp_path.glob("*.chip")
    good = path.read_bytes()
    flipped = good[:-1] + bytes([good[-1] ^ 1])
    path.write_bytes(
        {"flip": flipped, "cut": good[:-1], "append": good + b"!", "empty": b""}[damage]
    )
    assert run() == "miss"
    assert len(warnings()) == 1
    assert run() == "hit"
    assert path.read_bytes() == good


def test_an_entry_under_the_name_of_another_is_not_used(tmp_path: Path, warnings: Warnings) -> None:
    for operator in (Relu, Tanh):
        compile(chain(operator), [DelegatingDevice()], cache=tmp_path).close()
    first, second = tmp_path.glob("*.chip")
    content = first.read_bytes()
    second.write_bytes(content)
    for operator in (Relu, Tanh):
        with compile(chain(operator), [DelegatingDevice()], cache=tmp_path) as model:
            close(model.run(x)["y0"], outputs_of(chain(operator), x)["y0"])
    (warning,) = warnings()
    assert "is for another model" in warning


class Overwriting(DelegatingDevice):
    """Somebody writes to a file while this device compiles."""

    def __init__(self, file: Path, content: bytes) -> None:
        super().__init__(name="npu")
        self.file = file
        self.content = content

    def compile(self, model: Model, options: Options) -> Program:
        with self.file.open("r+b") as opened:
            opened.write(self.content)
        return super().compile(model, options)


@pytest.mark.parametrize("most_held", [2**30, 2**15])
def test_weights_that_change_meanwhile_are_noticed(
    most_held: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is of the weights before: no later model may get a program of those after by it.

    Where there is room for them, they are still held, and are what is compiled, too.
    """
    monkeypatch.setattr("crosschip.runtime.cache.fingerprints._MAX_HELD_NBYTES", most_held)
    cache, file = tmp_path / "cache", tmp_path / "weights"
    before, after = (np.full(2**14, number, np.float32) for number in (1, 100))
    weights = numpy_helper.from_array(before, "w")
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2**14]) for name in "xy")
    graph = helper.make_graph(nodes, "net", [x], [y], [weights])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location=file.name,
        size_threshold=0,
    )

    def run(device: Device) -> tuple[str, float]:
        model = crosschip.load(tmp_path / "model.onnx")
        with compile(model, [device], cache=cache) as compiled:
            return compiled.report.cache, float(compiled(np.zeros(2**14, np.float32))[0])

    device = DelegatingDevice(name="npu")
    if before.nbytes <= most_held:
        assert run(Overwriting(file, after.tobytes())) == ("miss", 1)
        assert [run(device), run(device)] == [("miss", 100), ("hit", 100)]
    else:
        with pytest.raises(ModelFileError, match="weights"):
            run(Overwriting(file, after.tobytes()))
        assert Cache(cache).listing() == []
    file.write_bytes(before.tobytes())
    assert run(device) == ("hit" if before.nbytes <= most_held else "miss", 1)
    assert run(device) == ("hit", 1)


@pytest.mark.parametrize("argument", [None, 123, b"", "", "a\0b"])
def test_an_argument_that_is_no_folder_is_an_error(argument: Any) -> None:
    with pytest.raises((InputError, CacheError), match=r"cache.*(False for no cache|cache=False)"):
        compile(chain(Relu), [DelegatingDevice()], cache=argument)


def test_the_size_of_the_cache_is_kept(tmp_path: Path, warnings: Warnings) -> None:
    for operator in (Relu, Tanh, Sigmoid):
        compile(
            chain(operator), [DelegatingDevice()], cache=CacheOptions(location=tmp_path, size=800)
        ).close()
    assert len(Cache(tmp_path).listing()) == 1
    with compile(chain(Sigmoid), [DelegatingDevice()], cache=tmp_path) as model:
        assert model.report.cache == "hit"
    compile(
        chain(Relu), [DelegatingDevice()], cache=CacheOptions(location=tmp_path, size=0)
    ).close()
    assert len(Cache(tmp_path).listing()) == 1
    (warning,) = warnings()
    assert "not kept" in warning


def test_a_planted_program_is_not_run(
    tmp_path: Path, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another model's program, under the right key, from whoever can only write to the folder."""
    cache = tmp_path / "cache"
    for operator in (Relu, Tanh):
        compile(chain(operator), [DelegatingDevice()], cache=cache).close()
    entries = [listed.entry for listed in Cache(cache).listing() if listed.entry]
    programs = {entry.key: Cache(cache).read(entry) for entry in entries}
    with monkeypatch.context() as patch:
        patch.setenv("CROSSCHIP_CACHE_SECRET", str(tmp_path / "of the attacker"))
        for entry, other in zip(entries, reversed(entries), strict=True):
            Cache(cache).write(entry, programs[other.key] or b"")
    for operator in (Relu, Tanh):
        device = DelegatingDevice()
        with compile(chain(operator), [device], cache=cache) as model:
            close(model.run(x)["y0"], outputs_of(chain(operator), x)["y0"])
            assert (model.report.cache, len(device.compiled)) == ("miss", 1)
    assert len(warnings()) == 2
    assert all("another secret than yours; compiling again" in each for each in warnings())


class Newer(DelegatingDevice):
    @property
    def version(self) -> str:
        return "2.0"


def test_another_version_of_a_device_compiles_anew(tmp_path: Path) -> None:
    for device in (DelegatingDevice(), Newer()):
        with compile(chain(Relu), [device], cache=tmp_path) as model:
            assert model.report.cache == "miss"


def test_the_default_folder_is_used_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "default"))
    compile(chain(Relu), [DelegatingDevice()], cache=False).close()
    assert not (tmp_path / "default").exists()
    compile(chain(Relu), [DelegatingDevice()], cache=True).close()
    assert len(Cache(tmp_path / "default").listing()) == 1
    compile(chain(Relu), [DelegatingDevice()], cache=str(tmp_path / "other")).close()
    assert len(Cache(tmp_path / "other").listing()) == 1


def test_an_unusable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"cannot be written to .*cache=False"):
        compile(chain(Relu), [DelegatingDevice()], cache=tmp_path / "file" / "cache")


COMPILING = """
import sys
import numpy as np
from tests.runtime.test_compiler_cache import DelegatingDevice, chain, compile
from crosschip.ops.standard.activation import Relu, Tanh

sys.stdin.readline()
device = DelegatingDevice(name="npu")
with compile(chain(Relu, Tanh), [device], cache=sys.argv[1]) as model:
    print(len(device.compiled), model.report.cache, model(np.array([-1, 0], np.float32)).tolist())
"""


@pytest.mark.slow
def test_eight_processes_fill_one_folder_at_once(tmp_path: Path) -> None:
    """All get the right answer, and one good entry is left; the ninth compiles nothing."""
    for out in at_once(COMPILING, str(tmp_path)):
        assert out in ("1 miss [0.0, 0.0]\n", "0 hit [0.0, 0.0]\n")
    assert [listed.problem for listed in Cache(tmp_path).listing()] == [""]
    assert len(list(tmp_path.glob("*.chip"))) == 1
    assert not list((tmp_path / ".unfinished").iterdir())
    (out,) = at_once(COMPILING, str(tmp_path), count=1)
    assert out == "0 hit [0.0, 0.0]\n"
