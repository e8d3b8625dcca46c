"""Culprits that take the process along, in one of its own, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.bisect.networks import inputs, network
from tests.bisect.planted import Fault, install, properties_of
from tests.cli.conftest import Crosschip
from tests.cli.conftest import crosschip as crosschip  # the fixture
from tests.drivers.serving import short_folder
from tests.modelling import chain

from crosschip.bisect import find_failing_operators
from crosschip.ir.entry_points import clear_entry_points
from crosschip.ops.definition.serialization import to_bytes
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Exp


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The device is installed, for drivers in a folder of the test's own, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with short_folder() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        clear_entry_points()
        install(tmp_path, monkeypatch)
        yield
        clear_entry_points()


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
def test_what_takes_the_process_along_is_found() -> None:
    report = find_failing_operators(
        chain(Exp, Relu),
        "planted",
        inputs={"x0": np.array([1, 2], np.float32)},
        properties={"planted": properties_of("reference", [Fault(("relu_0",), "crash")])},
    )
    (culprit,) = report.failing_operators
    assert (culprit.names, culprit.manner, culprit.actual) == (("relu_0",), "crash", {})
    assert culprit.detail.startswith("the driver's process ")
    assert "died of SIGABRT" in culprit.detail
    assert culprit.shows
    assert report.explained


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(("compile_timeout", "manner"), [(60.0, None), (0.5, "hang")])
def test_compiling_has_a_time_limit_of_its_own(compile_timeout: float, manner: str | None) -> None:
    report = find_failing_operators(
        chain(Exp),
        "planted",
        inputs={"x0": np.array([1, 2], np.float32)},
        properties={"planted": properties_of("reference", [Fault(("exp_0",), "compile slow")])},
        timeout=1.0,
        compile_timeout=compile_timeout,
    )
    assert [culprit.manner for culprit in report.failing_operators] == ([manner] if manner else [])


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
def test_the_command_tells_writes_and_replays(crosschip: Crosschip, tmp_path: Path) -> None:
    model = tmp_path / "net.chipm"
    model.write_bytes(to_bytes(network(1)))
    np.save(tmp_path / "x.npy", inputs()["x"])
    fault = properties_of("reference", [Fault(("mul_0",))])
    settings = [word for n, v in fault.items() for word in ("--property", f"planted.{n}={v}")]
    arguments = ("bisect", model, "--device", "planted", "--input", f"x={tmp_path / 'x.npy'}")
    folder = tmp_path / "found"
    told = crosschip(*arguments, *settings, "--no-isolate", "--save", folder)
    assert told.status == 1
    assert told.out.startswith("WRONG SWISH mul_0\n")
    assert "1 culprit among" in told.out
    document = crosschip(*arguments, *settings, "--no-isolate", "--json").document
    assert [c["operations"][0]["name"] for c in document["culprits"]] == ["mul_0"]
    right = crosschip("bisect", model, "--device", "planted", "--no-isolate", "--json")
    assert (right.status, right.document["culprits"]) == (0, [])
    assert right.document["notes"] == [
        "made-up inputs (seed 0): x; give real ones, which show what those may not"
    ]
    place = folder / "1-SWISH-mul_0"
    given = [w for p in sorted((place / "inputs").iterdir()) for w in ("--input", f"{p.stem}={p}")]
    ran = crosschip("run", place / "model.chipm", "--devices", "planted", *given, *settings,
                    "--no-cache", "--save", tmp_path / "again")  # fmt: skip
    assert ran.status == 0
    (again,), (actual,) = (tmp_path / "again").iterdir(), (place / "actual").iterdir()
    np.testing.assert_array_equal(np.load(again), np.load(actual))


def test_wrong_usage_is_told(crosschip: Crosschip, tmp_path: Path) -> None:
    model = tmp_path / "net.chipm"
    model.write_bytes(to_bytes(network(1)))
    assert crosschip("bisect", model).status == 2
    unknown = crosschip("bisect", model, "--device", "nobody", "--no-isolate")
    assert unknown.status == 1
    assert "there is no device 'nobody'" in unknown.err
    other = crosschip("bisect", model, "--device", "reference", "--against", "reference",
                      "--no-isolate")  # fmt: skip
    assert "cannot be looked at against itself" in other.err
