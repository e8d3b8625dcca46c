"""Configurations: printed and read again, they are the same; what is wrong is told."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import parser
from tests.modelling import DelegatingDevice, chain

import crosschip
from crosschip import Configuration
from crosschip.hal import Options, Performance, Precision, Program, Sizes
from crosschip.ir import InputError, Model
from crosschip.ops.standard.unary import Abs
from crosschip.runtime.discovery import open_device

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CONFIGURATIONS = st.builds(
    Configuration,
    precision=st.sampled_from([each.value for each in Precision]),
    threads=st.none() | st.integers(1, 2**62),
    in_flight=st.none() | st.integers(1, 2**62),
    performance=st.sampled_from([each.value for each in Performance]),
    properties=st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT, max_size=3), max_size=3),
)


@given(CONFIGURATIONS)
def test_what_is_printed_reads_as_the_same(configuration: Configuration) -> None:
    text = str(configuration)
    assert Configuration.parse(text) == configuration
    assert str(Configuration.parse(text)) == text
    read = tomllib.loads(text)  # without anything of ours
    assert read["precision"] == configuration.precision
    assert read.get("properties", {}) == configuration.properties


@given(CONFIGURATIONS, CONFIGURATIONS)
@settings(max_examples=50)
def test_what_is_given_comes_before_what_is_configured(
    one: Configuration, other: Configuration
) -> None:
    both = one.overridden(
        other.precision, other.threads, other.performance, other.properties, other.in_flight
    )
    assert (both.precision, both.performance) == (other.precision, other.performance)
    assert both.threads == (one.threads if other.threads is None else other.threads)
    assert both.in_flight == (one.in_flight if other.in_flight is None else other.in_flight)
    for device in {*one.properties, *other.properties}:
        named = {**one.properties.get(device, {}), **other.properties.get(device, {})}
        assert both.properties[device] == named
    assert one.overridden() == one


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "crosschip.toml"
    path.write_text('threads = 2\n[properties.mychip]\ncores = 4\nlevel = "hoch"\n', "utf-8")
    read = Configuration.read(path)
    assert read == Configuration(threads=2, properties={"mychip": {"cores": "4", "level": "hoch"}})
    assert Configuration.of(path) == Configuration.of(str(path)) == Configuration.of(read) == read
    assert Configuration.of(None) == Configuration()
    assert read.options(Sizes()) == Options(threads=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("threads = ", "it is not TOML: "),
        ("thread = 2", "there is no option 'thread' (did you mean 'threads'?); there are "),
        ("threads = 0", "threads is 0, but must be an integer of at least 1"),
        ("in_flight = 0", "in_flight is 0, but must be an integer of at least 1"),
        ("threads = true", "threads is True, but must be an integer of at least 1"),
        ('precision = "float23"', "there is no precision 'float23' (did you mean "),
        ("precision = 16", "there is no precision 16; there are float32, bfloat16, float16"),
        ('performance = "hihg"', "there is no performance mode 'hihg' (did you mean 'high'?); "),
        ("properties = 3", "properties is 3, but must be texts by name, by device"),
        ("[properties]\nmychip = 3", "must be texts by name, by device"),
        ("[properties.mychip]\ncores = 0.5", "must be texts by name, by device"),
        ("[properties.mychip]\ncores = true", "must be texts by name, by device"),
        ("x = " + "[" * 5000, "it is not TOML: "),
    ],
)
def test_a_file_that_says_something_else(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError) as raised:
        Configuration.read(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"# \xe4")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    for name, message in [
        ("latin", "is not UTF-8"),
        ("large", "larger than a configuration"),
        ("missing", "cannot be read: "),
        (".", "cannot be read: "),
    ]:
        with pytest.raises(InputError, match=message):
            Configuration.read(tmp_path / name)
    with pytest.raises(InputError, match="configuration is of type int, but must be"):
        crosschip.compile(chain(Abs), configuration=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be texts by name"):
        Configuration(properties={"mychip": {"a": "\ud800"}})


class Recording(DelegatingDevice):
    """Keeps the options of the last compilation."""

    options: Options | None = None

    def compile(self, model: Model, options: Options) -> Program:
        type(self).options = options
        return super().compile(model, options)


def test_devices_get_what_is_configured() -> None:
    configuration = Configuration(
        "bfloat16", 3, 4, 5, performance="low", properties={"elsewhere": {"x": "1"}}
    )
    devices = [Recording()]
    with crosschip.compile(chain(Abs), devices, cache=False, configuration=configuration):
        wanted = Options(Precision.BFLOAT16, 3, 4, performance=Performance.LOW)
        assert Recording.options == wanted
    other = configuration.overridden(in_flight=2, performance="high")
    with crosschip.compile(chain(Abs), devices, threads=1, cache=False, configuration=other):
        wanted = Options(Precision.BFLOAT16, 1, 2, performance=Performance.HIGH)
        assert Recording.options == wanted


@pytest.mark.parametrize("devices", [["onnxruntime", "openvino"]])
def test_properties_of_a_configuration_reach_the_devices_that_are_used(devices: list[str]) -> None:
    first, second = devices
    configuration = Configuration(properties={first: {"spinning": "0"}, second: {"nosuch": "1"}})
    placement = crosschip.explain(chain(Abs), first, configuration=configuration)
    assert placement.settings[first]["session.intra_op.allow_spinning"] == "0"
    overridden = crosschip.explain(
        chain(Abs),
        first,
        configuration=configuration,
        properties={first: {"spinning": "1"}},
    )
    assert overridden.settings[first]["session.intra_op.allow_spinning"] == "1"
    with pytest.raises(crosschip.Error, match="nosuch"):
        crosschip.explain(chain(Abs), second, configuration=configuration)
    near = r"properties for 'onnxrutime', .* \(did you mean 'onnxruntime'\?\)"
    with pytest.raises(InputError, match=near):
        crosschip.compile(chain(Abs), first, properties={"onnxrutime": {}})


MODES = [each.value for each in Performance]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("in_flight", [None, 2])
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino", "xla"])
def test_every_device_runs_in_every_mode(device: str, in_flight: int | None, mode: str) -> None:
    x = np.array([-1, 2], np.float32)
    with crosschip.compile(
        chain(Abs),
        device,
        configuration=crosschip.Configuration(performance=mode, in_flight=in_flight),
        cache=False,
    ) as compiled:
        requests = [compiled.submit({"x0": x}) for _ in range(4)]
        for outputs in (compiled.run({"x0": x}), *(request.result(30) for request in requests)):
            np.testing.assert_array_equal(outputs["y0"], np.abs(x))
        given = compiled.placement.settings[device]
    offers = device in ("onnxruntime", "openvino")
    assert (given.get("performance", "") is None) == (mode != "none" and not offers)
    assert all(isinstance(v, str) for n, v in given.items() if n != "performance")


@pytest.mark.parametrize("devices", ["onnxruntime,openvino"])
def test_what_engines_are_told(devices: str) -> None:
    """As ONNX Runtime's and OpenVINO's own documentation calls it."""
    processors = str(os.cpu_count())
    half = str(max(1, (os.cpu_count() or 1) // 2))
    threads, spins = "intra_op_num_threads", "session.intra_op.allow_spinning"
    wanted = {"low": ("1", "0"), "medium": (half, "0"), "high": ("0", "1"), "none": ("0", "1")}
    wanted["extreme"] = (processors, "1")
    for mode, pair in wanted.items():
        given = crosschip.explain(
            chain(Abs), "onnxruntime", configuration=crosschip.Configuration(performance=mode)
        ).settings
        assert (given["onnxruntime"][threads], given["onnxruntime"][spins]) == pair
    given = crosschip.explain(
        chain(Abs),
        devices,
        threads=3,
        properties={"onnxruntime": {"spinning": "1"}},
        configuration=crosschip.Configuration(performance="low"),
    ).settings
    assert given["onnxruntime"] == {threads: "3", spins: "1"}
    assert given["openvino"]["INFERENCE_NUM_THREADS"] == "3"
    assert given["openvino"]["SCHEDULING_CORE_TYPE"] == "ECORE_ONLY"
    assert given["openvino"]["INFERENCE_PRECISION_HINT"] == "f32"


@pytest.mark.parametrize(
    ("mode", "more", "threads"),
    [
        ("none", {}, 4),
        ("low", {}, 1),
        ("medium", {"in_flight": 8}, 1),
        ("high", {}, 4),
        ("extreme", {}, 4),
        ("low", {"threads": 3}, 3),
    ],
)
def test_of_several_runs_none_has_more_than_its_share(
    monkeypatch: pytest.MonkeyPatch, mode: str, more: dict[str, Any], threads: int
) -> None:
    from crosschip.devices.onnxruntime import modes
    from crosschip.hal import options

    monkeypatch.setattr(options, "processor_cores", lambda: 8)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    given: dict[str, Any] = {"in_flight": 2, **more}
    found = modes.settings(Options(performance=Performance(mode), **given), {})
    assert found[modes.THREADS] == str(threads)


@pytest.mark.parametrize("name", ["openvino"])
def test_openvino_takes_what_it_is_told(name: str) -> None:
    device = open_device(name).device
    for mode, told in device.modes().items():
        options = Options(performance=mode)
        program = device.compile(chain(Abs), options)
        compiled = program._compiled_model  # type: ignore[attr-defined]
        for name, value in told.items():
            if name != "SCHEDULING_CORE_TYPE":  # a processor with one kind of cores has one answer
                found = compiled.get_property(name)
                shown = {True: "YES", False: "NO"}[found] if isinstance(found, bool) else str(found)
                hyper = name == "ENABLE_HYPER_THREADING"  # off where the processor has none
                assert shown == value or hyper
        program.close()


@pytest.mark.parametrize("device", ["onnxruntime"])
def test_modes_are_kept_apart_in_the_cache(tmp_path: Path, device: str) -> None:
    words = []
    for mode in ("low", "high", "low"):
        with crosschip.compile(
            chain(Abs),
            device,
            configuration=crosschip.Configuration(performance=mode),
            cache=tmp_path,
        ) as compiled:
            words.append(compiled.report.cache)
    assert words == ["miss", "miss", "hit"]


def test_a_device_that_fails_to_say_what_it_tells_its_engine() -> None:
    class Silent(DelegatingDevice):
        def engine_settings(self, options: Options) -> dict[str, str]:
            raise RuntimeError("no idea")

    assert crosschip.explain(chain(Abs), [Silent()]).settings == {"test": {}}


STOPS = "session.force_spinning_stop"


@pytest.mark.parametrize("mode", ["low", "none"])
def test_threads_stop_spinning_between_programs_of_several_devices(
    tmp_path: Path, mode: str
) -> None:
    """So they do in what is compiled, found by its plan, saved and explained."""
    path, shipped, cache = tmp_path / "m.onnx", tmp_path / "m.chips", tmp_path / "cache"
    text = "g (float[2] x) => (float[2] y) { a = Tanh (x) y = Exp (a) }"
    onnx.save(onnx.helper.make_model(parser.parse_graph(text)), path)
    devices, x = ["onnxruntime", "openvino"], np.zeros(2, np.float32)
    arguments: dict[str, Any] = {"cache": cache, "configuration": Configuration(performance=mode)}
    for pin, stops in (({"Exp": "openvino"}, True), (None, False)):
        setting = "1" if stops else None
        arguments["placement"] = crosschip.PlacementOptions(pin=pin)
        for _ in range(2):
            with crosschip.compile(path, devices, **arguments) as compiled:
                np.testing.assert_array_equal(compiled(x), 1)
                assert compiled.options.alternates == stops
                assert compiled.placement.settings["onnxruntime"].get(STOPS) == (
                    "1" if stops else None
                )
                compiled.save(shipped)
        with crosschip.load_compiled(shipped) as loaded:
            np.testing.assert_array_equal(loaded(x), 1)
            assert loaded.options.alternates == stops
        placement = crosschip.explain(path, devices, **arguments)
        assert placement.settings["onnxruntime"].get(STOPS) == setting
