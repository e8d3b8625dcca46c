"""Engines called directly: what there is none of, and what is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crosschip.bench.peers import PEERS, open_peer
from crosschip.devices.onnxruntime import quiet
from crosschip.ir import DeviceError


def test_an_unknown_engine() -> None:
    with pytest.raises(DeviceError, match=r"no engine 'nosuch' .*there are onnxruntime, openvino"):
        open_peer("nosuch")


@pytest.mark.parametrize("name", PEERS)
def test_an_engine_that_is_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(quiet, "_engine", None)
    with pytest.raises(DeviceError, match=f"{name} is not installed"):
        open_peer(name)(Path("model.onnx"), {}, None)
