"""Devices are found by their entry points, in the box or not, whole or broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain

import crosschip
from crosschip.cli import run
from crosschip.hal import Instance, Kind
from crosschip.ir import DeviceError
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.runtime import discovery

# What a vendor ships, in modules of one package; all but the first are broken.
MODULES = {
    "good": """
        from crosschip.devices.reference import ReferenceDevice
        from crosschip.hal import Kind

        class AcmeDevice(ReferenceDevice):
            vendor = "Acme"
            kind = Kind.ACCELERATOR
            version = "7.1"

            @classmethod
            def known_properties(cls):
                return {"cores": "how many cores to use"}
    """,
    "raises": "raise RuntimeError('no driver for\\nthis kernel')",
    "exits": "import sys; sys.exit('this SDK has expired')",
    "does_not_parse": "def broken(:",
    "needs_another": "import a_module_that_nobody_has",
    "a_function": "def AcmeDevice(properties): return 1",
    "another_class": "class AcmeDevice: pass",
    "unfinished": "from crosschip.hal import Device\nclass AcmeDevice(Device): pass",
    "does_not_start": """
        from acme_good import AcmeDevice as Good

        class AcmeDevice(Good):
            def __init__(self, properties=None):
                raise OSError("the board does not answer")
    """,
    "nameless": """
        from acme_good import AcmeDevice as Good

        class AcmeDevice(Good):
            vendor = property(lambda self: 1 / 0)
    """,
    "odd_kind": """
        from acme_good import AcmeDevice as Good

        class AcmeDevice(Good):
            kind = "toaster"
    """,
    "versionless": """
        from acme_good import AcmeDevice as Good

        class AcmeDevice(Good):
            @property
            def version(self):
                raise LookupError("the firmware does not say")
    """,
    "does_not_stop": """
        from acme_good import AcmeDevice as Good

        class AcmeDevice(Good):
            def close(self):
                raise OSError("the board is stuck")
    """,
}
REASONS = {
    "raises": "RuntimeError: no driver for",
    "exits": "this SDK has expired",
    "does_not_parse": "SyntaxError",
    "needs_another": "No module named 'a_module_that_nobody_has'",
    "a_function": "acme has by that name is not a subclass of crosschip.hal.Device",
    "another_class": "acme has by that name is not a subclass of crosschip.hal.Device",
    "unfinished": "TypeError",
    "does_not_start": "OSError: the board does not answer",
    "nameless": "ZeroDivisionError",
    "odd_kind": "probe does not say the kind",
    "versionless": "LookupError: the firmware does not say",
    "does_not_stop": "OSError: the board is stuck",
    "missing_module": "No module named 'acme_missing'",
    "missing_class": "has no attribute 'Nothing'",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a process in which the vendor's package is installed."""
    folder = tmp_path_factory.mktemp("site")
    about = folder / "acme-7.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 7.1\n")
    entries = ["[crosschip.devices]", "missing_module = acme_missing:AcmeDevice"]
    entries.append("missing_class = acme_good:Nothing")
    for name, source in MODULES.items():
        (folder / f"acme_{name}.py").write_text(textwrap.dedent(source))
        entries.append(f"{name} = acme_{name}:AcmeDevice")
    (about / "entry_points.txt").write_text("\n".join(entries) + "\n")
    return {**os.environ, "PYTHONPATH": with_sources(folder)}


def with_sources(folder: Path) -> str:
    """A search path of a folder, and whatever this process searches before what is installed."""
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def python(program: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, env=dict(environment), capture_output=True, text=True)


@pytest.mark.slow
def test_every_device_is_a_line_and_none_a_traceback(installed: Mapping[str, str]) -> None:
    done = python(
        "from crosschip.cli import run; raise SystemExit(run(['devices', '--json']))", installed
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = {device["name"]: device for device in json.loads(done.stdout)}
    assert set(found) >= {"reference", "good", *REASONS}
    assert found["good"] == {
        "name": "good",
        "vendor": "Acme",
        "kind": "accelerator",
        "version": "7.1",
        "description": "",
        "memory": None,
        "simulated": False,
        "available": True,
        "reason": "",
        "properties": {"cores": "how many cores to use"},
        "conflict": "",
        "drivers": [],
    }
    for name, reason in REASONS.items():
        assert not found[name]["available"], name
        assert reason in found[name]["reason"], name
        assert "\n" not in found[name]["reason"]


@pytest.mark.slow
def test_a_vendors_device_runs_models(installed: Mapping[str, str]) -> None:
    program = """if True:
        import crosschip, numpy
        from crosschip.ir import Builder, ElementType, TensorType
        from crosschip.ops.standard.activation import Relu

        b = Builder()
        x = b.input("x", TensorType(ElementType.FLOAT32, (2,)))
        b.output("y", b.add(Relu, x))
        settings = {"good": {"cores": "2"}}
        model = crosschip.compile(b.build(), "good", properties=settings, cache=False)
        print(model.placement.segments[0].device, model(numpy.array([-1, 1], "f4")).tolist())
    """
    done = python(program, installed)
    assert (done.returncode, done.stdout, done.stderr) == (0, "good [0.0, 1.0]\n", "")


def test_importing_crosschip_loads_nothing() -> None:
    program = """if True:
        import sys
        before = set(sys.modules)
        import crosschip
        print(sorted({name.split(".")[0] for name in set(sys.modules) - before}))
        print(dir(crosschip))
    """
    done = python(program, os.environ)
    loaded, names = done.stdout.splitlines()
    heavy = {"numpy", "ml_dtypes", "onnx", "google", "typer", "rich", "xxhash", "platformdirs"}
    engines = {"onnxruntime", "openvino"}
    assert "'crosschip'" in loaded
    assert not (heavy | engines) & set(loaded.strip("[]").replace("'", "").split(", "))
    assert "compile" in names


@pytest.mark.slow
def test_compiling_for_one_device_loads_no_other() -> None:
    program = """if True:
        import sys
        import crosschip
        from tests.modelling import chain
        from crosschip.ops.standard.activation import Relu
        crosschip.compile(chain(Relu), "reference", cache=False)
        print({"onnxruntime", "openvino", "onnx", "typer", "rich"} & set(sys.modules))
    """
    root = str(Path(__file__).parents[2])
    done = python(program, {**os.environ, "PYTHONPATH": with_sources(Path(root))})
    assert (done.stdout, done.stderr) == ("set()\n", "")


@pytest.mark.slow
def test_listing_devices_loads_no_importer_and_no_other_command() -> None:
    program = """if True:
        import sys
        from crosschip.cli import run
        run(["devices", "--json"])
        print({"crosschip.importers.onnx", "crosschip.importers.paddle", "cv2", "PIL"}
              & set(sys.modules), file=sys.stderr)
    """
    assert python(program, os.environ).stderr == "set()\n"


def test_every_name_of_the_front_door_opens() -> None:
    for name in crosschip.__all__:
        assert getattr(crosschip, name) is not None
    with pytest.raises(AttributeError, match="'crosschip' has no attribute 'nothing'"):
        crosschip.nothing  # noqa: B018 - reading it is the test
    assert set(crosschip.__all__) <= set(dir(crosschip))


class Npu(DelegatingDevice):
    kind = Kind.ACCELERATOR


class Gpu(DelegatingDevice):
    kind = Kind.GPU


class Broken(DelegatingDevice):
    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        raise DeviceError("the board does not answer")


@pytest.fixture
def five_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of devices of every kind."""
    values = {
        "broken": f"{__name__}:Broken",
        "cpu": "tests.modelling:DelegatingDevice",
        "gpu": f"{__name__}:Gpu",
        "npu": f"{__name__}:Npu",
        "other-npu": f"{__name__}:Npu",
        "reference": "crosschip.devices.reference:ReferenceDevice",
    }
    found = {name: [EntryPoint(name, value, discovery.GROUP)] for name, value in values.items()}
    monkeypatch.setattr(discovery, "entries", lambda: found)


@pytest.mark.usefixtures("five_devices")
def test_auto_means_accelerators_first_and_the_reference_last() -> None:
    assert discovery.automatic() == ["npu", "other-npu", "gpu", "broken", "cpu", "reference"]
    with crosschip.compile(chain(Relu), cache=False) as model:
        choice = model.placement.choice
        assert choice is not None
        assert sorted(choice.order[:-1]) == ["cpu", "gpu", "npu", "other-npu"]
        assert choice.order[-1] == "reference"


@pytest.mark.usefixtures("five_devices")
def test_a_device_is_called_by_its_entry_point() -> None:
    with discovery.open_device("other-npu") as device:
        assert device.device.name == "other-npu"


@pytest.mark.usefixtures("five_devices")
def test_a_device_that_fails_to_load_is_an_error_where_it_is_asked_for() -> None:
    with pytest.raises(DeviceError, match=r"device 'broken' failed to load: .*does not answer"):
        crosschip.compile(chain(Relu), "cpu,broken", cache=False)
    with pytest.raises(DeviceError, match=r"no device 'tpu' .*; installed are: broken, cpu, gpu"):
        discovery.open_device("tpu")


opened: list[Npu] = []


class Tracked(Npu):
    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        opened.append(self)


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> list[Npu]:
    """The instances that have been made of the device `tracked`."""
    values = {"tracked": f"{__name__}:Tracked", "broken": f"{__name__}:Broken"}
    found = {name: [EntryPoint(name, value, discovery.GROUP)] for name, value in values.items()}
    monkeypatch.setattr(discovery, "entries", lambda: found)
    opened.clear()
    return opened


def test_what_is_opened_by_name_is_closed_with_the_model(tracked: list[Npu]) -> None:
    own = DelegatingDevice(name="own", declines=["RELU"])
    with crosschip.compile(chain(Relu), [own, "tracked"], cache=False) as model:
        model(np.zeros(2, np.float32))
        assert [device.closed for device in tracked] == [0]
    assert [device.closed for device in tracked] == [1]
    assert own.closed == 0


def test_what_is_opened_by_name_is_closed_when_compiling_fails(tracked: list[Npu]) -> None:
    with pytest.raises(DeviceError):
        crosschip.compile(chain(Relu), "tracked,broken", cache=False)
    crosschip.explain(chain(Relu), "tracked")
    discovery.report("tracked")
    assert [device.closed for device in tracked] == [1, 1, 1]


def test_two_devices_of_one_name_are_an_error_that_names_both_packages(tmp_path: Path) -> None:
    for package in ("acme", "apex"):
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        entry = f"[crosschip.devices]\nnpu = {package}_driver:Device\n"
        (about / "entry_points.txt").write_text(entry)
    program = """if True:
        import crosschip
        (npu,) = [device for device in crosschip.list_devices() if device.name == "npu"]
        print(npu.available, npu.reason)
    """
    done = python(program, {**os.environ, "PYTHONPATH": with_sources(tmp_path)})
    assert done.stderr == ""
    assert done.stdout.startswith(
        "False there are two devices called 'npu', from the package acme and the package apex; "
        "take one of them away"
    )


def test_a_device_for_another_version_of_the_contract_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Npu, "contract", 2)
    found = {"npu": [EntryPoint("npu", f"{__name__}:Npu", discovery.GROUP)]}
    monkeypatch.setattr(discovery, "entries", lambda: found)
    with pytest.raises(DeviceError, match="'npu' is written for version 2 of the driver contract"):
        discovery.open_device("npu")


def test_automatic_devices_are_opened_once_each(tracked: list[Npu]) -> None:
    with crosschip.compile(chain(Relu), cache=False):
        assert len(tracked) == 1


def test_commands_that_need_no_device_open_none(tracked: list[Npu]) -> None:
    for command in (["ops"], ["ops", "CONV_2D"], ["cache", "list"], ["--help"]):
        assert run(command) == 0
    assert tracked == []


class Several(DelegatingDevice):
    """Two chips, of which the second is simulated."""

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties)
        self.instance = instance

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return [
            Instance(name="0", kind=Kind.GPU, description="the large one", memory=2**30),
            Instance(name="1", kind=Kind.ACCELERATOR, simulated=True),
            Instance(name="2", kind=Kind.GPU, problem="is hot"),
        ]


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"acme": [EntryPoint("acme", f"{__name__}:Several", discovery.GROUP)]}
    monkeypatch.setattr(discovery, "entries", lambda: found)


class SlowToStart(DelegatingDevice):
    @classmethod
    def probe(cls) -> list[Instance]:
        return [
            Instance(name="cpu", kind=Kind.CPU, preferred=False),
            Instance(name="gpu", kind=Kind.GPU),
        ]


@pytest.mark.parametrize(
    ("others", "considered"),
    [
        ({}, ["slow:gpu", "slow"]),
        ({"cpu": "tests.modelling:DelegatingDevice"}, ["slow:gpu", "cpu"]),
    ],
)
def test_auto_considers_a_device_that_is_not_preferred_only_in_place_of_others(
    others: dict[str, str], considered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "reference": "crosschip.devices.reference:ReferenceDevice",
        "slow": f"{__name__}:SlowToStart",
    }
    entries = {
        name: [EntryPoint(name, value, discovery.GROUP)]
        for name, value in (values | others).items()
    }
    monkeypatch.setattr(discovery, "entries", lambda: entries)
    assert discovery.automatic() == [*considered, "reference"]


@pytest.mark.usefixtures("several")
def test_each_chip_of_a_device_is_listed() -> None:
    first, second, third = discovery.list_devices()
    assert (first.name, first.kind, first.memory) == ("acme", "gpu", 2**30)
    assert (second.name, second.simulated, second.available) == ("acme:1", True, True)
    assert (third.name, third.available, third.reason) == ("acme:2", False, "is hot")
    assert discovery.automatic() == ["acme"]


@pytest.mark.usefixtures("several")
def test_two_chips_of_one_device_share_a_model() -> None:
    own = DelegatingDevice(name="own", declines=["TANH"])
    with crosschip.compile(chain(Tanh), [own, "acme:1", "acme:0"], cache=False) as model:
        assert model.placement.decisions[0].device == "acme:1"
    with pytest.raises(
        DeviceError, match=r"no device 'acme:9'.*; there are: acme:0, acme:1, acme:2"
    ):
        crosschip.compile(chain(Relu), "acme:9", cache=False)


_TOASTER: Any = "toaster"


@pytest.mark.parametrize(
    "answer",
    [None, [], [1], [Instance(kind=_TOASTER)], [Instance(kind=Kind.CPU)] * 2],
)
def test_a_probe_that_breaks_the_contract_is_a_line(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Npu, "probe", classmethod(lambda cls: answer))
    found = {"npu": [EntryPoint("npu", f"{__name__}:Npu", discovery.GROUP)]}
    monkeypatch.setattr(discovery, "entries", lambda: found)
    (line,) = discovery.list_devices()
    assert not line.available
    assert "npu: " in line.reason


def test_entry_points_are_read_once() -> None:
    """By importers, devices and packages of operators together."""
    done = python(
        "from importlib import metadata\n"
        "read = metadata.entry_points\n"
        "times = []\n"
        "metadata.entry_points = lambda **group: times.append(group) or read(**group)\n"
        "import crosschip\n"
        "from crosschip.ir.entry_points import clear_entry_points\n"
        "from crosschip.ops.packages import packages\n"
        "from crosschip.runtime.discovery import origins\n"
        "try:\n"
        "    crosschip.load(b'nothing')\n"
        "except crosschip.Error:\n"
        "    print(len(times), len(packages()), 'reference' in origins(), len(times))\n"
        "clear_entry_points()\n"
        "print('reference' in origins(), len(times))\n",
        os.environ,
    )
    assert (done.stdout, done.stderr) == ("1 0 True 1\nTrue 2\n", "")
