"""The list of converters that do more than map an operator is complete."""

from __future__ import annotations

from crosschip.devices.openvino.engine_only import ENGINE_ONLY


def test_each_reason_is_a_phrase() -> None:
    for function, reason in ENGINE_ONLY.items():
        assert callable(function)
        assert reason[0].islower(), function.__name__
        assert not reason.endswith("."), function.__name__
