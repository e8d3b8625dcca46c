"""The passes for OpenVINO keep results, and produce operations that it supports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.limits import lacks_avx512

import crosschip
from crosschip.conformance.cases import all_cases
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.engine_only import ENGINE_ONLY
from crosschip.devices.openvino.lowering.convolution import reads_lone_column, strides_over_padding
from crosschip.devices.openvino.target import TARGET
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Capabilities, Options, Program, Support
from crosschip.ir import Array, Builder, ElementType, Model, Operation, TensorType
from crosschip.ops import Conv2D
from crosschip.passes import run
from crosschip.passes.rewrite_operations import RewriteOperations

OPERATORS = sorted(
    {o.type for p in TARGET.passes if isinstance(p, RewriteOperations) for o in p.operators}
)


class LoweredReference(ReferenceDevice):
    """The reference device on models after OpenVINO's passes."""

    def __init__(self) -> None:
        super().__init__()
        self._target = OpenVinoDevice()

    def capabilities(self) -> Capabilities:
        # Integers are narrowed as on OpenVINO: runs in which they do not fit are refused.
        return replace(super().capabilities(), narrowed=TARGET.capabilities.narrowed)

    def supports(self, operation: Operation, options: Options) -> Support:
        return self._target.supports(operation, options)

    def compile(self, model: Model, options: Options) -> Program:
        lowered = run(model, TARGET.passes)
        for operation in lowered.operations:
            answer = self.supports(operation, options)
            assert answer, f"{operation.name}: {answer.reason}"
        return ReferenceProgram(lowered)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_passes_compute_what_operators_mean(operator: str) -> None:
    """All operators, with the cases of the conformance kit."""
    device, claims = LoweredReference(), Claims()
    cases = [case for case in all_cases(operator, quick=True) if not case.loaded]
    results = [judge(case, device, claims) for case in cases]
    failed = [f"{r.id}: {r.detail}" for r in results if r.verdict is Verdict.FAIL]
    assert not failed, failed[0]
    assert lacks_avx512() or any(r.verdict is Verdict.PASS for r in results)


def convolutions() -> st.SearchStrategy[Model]:
    """Convolutions of one or two channels, many of which need the passes."""

    @st.composite
    def draw_model(draw: st.DrawFn) -> Model:
        kernel = draw(st.sampled_from([(1, 1), (1, 3), (3, 2)]))
        channels, group = draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
        type_ = draw(st.sampled_from([ElementType.FLOAT32, ElementType.BFLOAT16]))
        width = draw(st.sampled_from([kernel[1], kernel[1] + 1, 6]))
        filters = np.arange(1, 1 + 4 * channels // group * kernel[0] * kernel[1]) % 5 - 2
        shape = (4, channels // group, *kernel)
        b = Builder("convolution")
        x = b.input("x", TensorType(type_, (1, channels, 6, width)))
        y = b.add(
            Conv2D,
            x,
            filters.reshape(shape).astype(type_.dtype),
            np.array([1, -1, 0, 2]).astype(type_.dtype) if draw(st.booleans()) else None,
            pads=draw(st.sampled_from([(0, 0, 0, 0), (1, 0, 0, 1)])),
            strides=draw(st.sampled_from([(1, 1), (1, 2), (2, 2)])),
            group=group,
            name="conv",
        )
        b.output("y", y)
        return b.build()

    return draw_model()


def outputs(model: Model, x: Array) -> Array:
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        return np.asarray(compiled.run({"x": x})["y"])


@given(convolutions())
def test_convolutions_for_openvino_compute_the_same(model: Model) -> None:
    legal = run(model, TARGET.passes)
    legal.verify()
    for operation in legal.operations:
        if isinstance(operation, Conv2D):
            assert operation.name == "conv"
            assert not strides_over_padding(operation)
            assert not (operation.group == 1 and reads_lone_column(operation))
            assert operation.outputs[0].type.element_type is ElementType.FLOAT32
    type_ = model.inputs["x"].type
    x = (np.arange(np.prod(type_.static_shape or ())) % 7 - 3).reshape(type_.static_shape or ())
    x = x.astype(type_.element_type.dtype)
    # Small integers: bfloat16 holds every sum, and no order of summing rounds.
    np.testing.assert_array_equal(outputs(legal, x), outputs(model, x))


def test_each_reason_to_be_engine_only_is_a_phrase() -> None:
    for function, reason in ENGINE_ONLY.items():
        assert callable(function)
        assert reason[0].islower(), function.__name__
        assert not reason.endswith("."), function.__name__
