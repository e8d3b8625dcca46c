"""The layers of the models that OpenVINO compiles."""

from __future__ import annotations

from typing import Any

import pytest
from openvino import Node

from crosschip.devices.openvino.program import OpenVinoProgram


def noted_layers(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Record the layers of all models compiled from now on."""
    layers: list[Node] = []
    make = OpenVinoProgram.__init__

    def noted(self: OpenVinoProgram, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        layers.extend(self._compiled_model.get_runtime_model().get_ops())

    monkeypatch.setattr(OpenVinoProgram, "__init__", noted)
    return layers


def said(layers: list[Node], kind: str, fact: str = "layerType") -> list[str]:
    """Return a property of each layer of a type."""
    facts = [layer.get_rt_info() for layer in layers]
    return [each[fact].astype(str) for each in facts if each["layerType"].astype(str) == kind]
