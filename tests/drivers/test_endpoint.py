"""Where drivers are, and who may go there."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.endpoint import Death, Endpoint, folder
from crosschip.ir import DeviceError, InputError


def test_the_folder_is_closed_to_others(runtime: Path) -> None:
    assert folder() == runtime / "crosschip"
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700
    folder().chmod(0o777)
    assert stat.S_IMODE(folder().stat().st_mode) == 0o700


def test_a_folder_that_leads_elsewhere_is_refused(runtime: Path) -> None:
    (runtime / "crosschip").symlink_to("/tmp")
    with pytest.raises(DeviceError, match="is not this user's own; set XDG_RUNTIME_DIR"):
        folder()


def test_a_file_in_its_place_is_told(runtime: Path) -> None:
    (runtime / "crosschip").write_text("")
    with pytest.raises(DeviceError, match="cannot be made: File exists"):
        folder()


@pytest.mark.parametrize("base", ["/nowhere", ""])
def test_without_a_runtime_folder_the_name_is_the_users(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", base)
    monkeypatch.setattr("tempfile.tempdir", str(runtime))
    assert folder() == runtime / f"crosschip-{os.geteuid()}"


@given(st.text(max_size=60), st.dictionaries(st.text(), st.text(), max_size=2))
def test_sockets_have_short_names_and_each_driver_its_own(
    device: str, properties: dict[str, str]
) -> None:
    endpoint = Endpoint.of(device, "driver", properties)
    assert len(os.fsencode(endpoint.path)) <= 100
    assert endpoint.path.parent == folder()
    assert endpoint == Endpoint.of(device, "driver", dict(reversed(properties.items())))
    others = [Endpoint.of(device + "x", "driver", properties)]
    others.append(Endpoint.of(device, "driver", {**properties, "more": "1"}))
    assert all(other.path != endpoint.path for other in others)


def test_a_driver_that_runs_already_is_where_it_is(runtime: Path) -> None:
    endpoint = Endpoint.of("npu", f"unix:{runtime}/x.sock", {})
    assert (endpoint.path, endpoint.started) == (runtime / "x.sock", False)
    with pytest.raises(InputError, match="runs already, so it has its properties"):
        Endpoint.of("npu", "unix:/x", {"cores": "2"})


def test_deaths_are_remembered_and_damage_is_passed_over(runtime: Path) -> None:
    endpoint = Endpoint.of("npu", f"unix:{runtime}/x.sock", {})
    assert list(endpoint.deaths()) == []
    first, second = (
        Death(time.time(), 1, "died of SIGKILL"),
        Death(time.time(), 2, 'said "no"\n\x00'),
    )
    endpoint.record_death(first)
    with endpoint.path.with_suffix(".deaths").open("ab") as file:
        file.write(b"\xff\n[1]\nnull\n[1, 2, 3, 4]\n")
    endpoint.record_death(second)
    assert [first, second] == [death for death in endpoint.deaths() if death.process in (1, 2)]
