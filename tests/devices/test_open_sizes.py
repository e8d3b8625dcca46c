"""Dynamic dimensions: sizes that do not fit are refused, and the next run is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.devices.conftest import symbolic

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.unchecked import FAILS_OF_NOTHING, UNCHECKED
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, DeviceError, ElementType, TensorType, symbol
from crosschip.ops import examples_of, operator_named, operators
from crosschip.ops.definition.examples import Sample, arrays_for, model_of, samples
from crosschip.ops.standard.adaptive_pooling import AdaptivePool
from crosschip.ops.standard.pooling import Pool

F32 = ElementType.FLOAT32
CHECKED = ("AND", "GATHER", "MOD", *sorted(operator.type for operator in UNCHECKED))


@pytest.fixture(scope="module")
def device() -> Iterator[OpenVinoDevice]:
    with OpenVinoDevice() as opened:
        yield opened


@pytest.mark.parametrize("name", CHECKED)
def test_sizes_that_may_not_fit(device: OpenVinoDevice, name: str) -> None:
    """Each axis of each input with 0, 1 and one more element, then the original again."""
    for arguments in examples_of(operators()[name])[:3]:
        model = model_of(operators()[name], arguments, named=True)
        if not all(device.supports(operation, Options()) for operation in model.operations):
            continue
        program = device.compile(model, Options(threads=1))
        reference = ReferenceDevice().compile(model, Options())
        own = arrays_for(arguments)
        for arrays in (*_resized(arguments), own):
            inputs = [arrays[name] for name in model.inputs]
            try:
                expected = reference.run(inputs)
            except DeviceError:
                with pytest.raises(DeviceError, match="openvino"):
                    program.run(inputs)
                continue
            for made, wanted in zip(program.run(inputs), expected, strict=True):
                assert (made.dtype, made.shape) == (wanted.dtype, wanted.shape)
        for made, wanted in zip(program.run(inputs), expected, strict=True):
            np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)


def _resized(arguments: Mapping[str, Any]) -> Iterator[dict[str, Array]]:
    for name, sample in samples(arguments):
        shape = sample.type.static_shape or ()
        for axis, size in enumerate(shape if sample.value is None else ()):
            for other in {0, 1, size + 1} - {size}:
                sizes = (*shape[:axis], other, *shape[axis + 1 :])
                changed: Sample = replace(sample, type=replace(sample.type, shape=sizes))
                yield {**arrays_for(arguments), **arrays_for({name: changed})}


@pytest.mark.parametrize("slot", ["scale", "bias", "mean", "variance"])
def test_statistics_of_another_length(device: OpenVinoDevice, slot: str) -> None:
    image, one = np.ones((2, 3, 4, 4), np.float32), np.ones(3, np.float32)
    statistics = {"scale": one, "bias": one, "mean": one, "variance": one, slot: one[:1]}
    b = Builder()
    inputs = [
        b.input(f"input {i}", symbolic(i, array))
        for i, array in enumerate([image, *statistics.values()])
    ]
    b.output("y", b.add(operator_named("BATCH_NORMALIZATION"), *inputs))
    program = device.compile(b.build(), Options())
    with pytest.raises(DeviceError, match=f"openvino: BATCH_NORMALIZATION .*: {slot}: .* differ"):
        program.run([image, *statistics.values()])


@pytest.mark.parametrize("loaded", [False, True])
def test_a_refusal_leaves_nothing_behind(device: OpenVinoDevice, loaded: bool) -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (symbol("n"), symbol("c"))))
    y = b.input("y", TensorType(F32, (symbol("m"),)))
    b.output("z", b.add(operator_named("MOD"), x, y))
    model = b.build()
    program = device.compile(model, Options(threads=1))
    if loaded:
        saved = program.save()
        assert saved is not None
        program = device.load(saved, model, Options(threads=1))
    for size in (3, 2, 5):
        wide = np.arange(2 * size, dtype=np.float32).reshape(2, size)
        with pytest.raises(DeviceError, match="openvino"):
            program.run([wide, np.ones(size + 7, np.float32)])
        (made,) = program.run([wide, np.full(size, 2, np.float32)])
        np.testing.assert_array_equal(made, np.mod(wide, 2))


@pytest.mark.parametrize(
    "operator",
    [o for o in operators().values() if issubclass(o, (AdaptivePool, Pool))],
    ids=lambda operator: operator.type,
)
def test_an_empty_batch(device: OpenVinoDevice, operator: type[AdaptivePool | Pool]) -> None:
    """In the middle of a model, too."""
    assert issubclass(operator, FAILS_OF_NOTHING)
    rank = operator.spatial_rank
    twos = (2,) * rank
    named: dict[str, Any] = (
        {"output_shape": twos}
        if issubclass(operator, AdaptivePool)
        else {"kernel_shape": twos, "strides": twos}
    )
    b = Builder()
    sizes = [symbol(f"s{axis}") for axis in range(rank)]
    x = b.input("x", TensorType(F32, (symbol("n"), 3, *sizes)))
    pooled = b.add(operator, b.add(operator_named("EXP"), x), **named)
    b.output("y", b.add(operator_named("TANH"), pooled))
    program = device.compile(b.build(), Options())
    for batch in (0, 2, 0, 1):
        (made,) = program.run([np.ones((batch, 3, *(4,) * rank), np.float32)])
        assert made.shape == (batch, 3, *twos)
        np.testing.assert_allclose(made, np.tanh(np.exp(np.float32(1))), rtol=1e-5)


def test_one_thread_and_sizes_that_only_inputs_leave_open(device: OpenVinoDevice) -> None:
    """With one thread, OpenVINO reports errors only to `wait`."""
    b = Builder()
    x = b.input("x", TensorType(F32, (symbol("n"), 1)))
    b.output("y", b.add(operator_named("EXPAND"), x, (2, 3)))
    program = device.compile(b.build(), Options(threads=1))
    for _ in range(2):
        assert program.run([np.ones((2, 1), np.float32)])[0].shape == (2, 3)
        for rows in (0, 4):
            with pytest.raises(DeviceError, match="openvino"):
                program.run([np.ones((rows, 1), np.float32)])


def test_suppression_without_boxes_or_classes(device: OpenVinoDevice) -> None:
    b = Builder()
    boxes = b.input("boxes", TensorType(F32, (symbol("n"), symbol("m"), 4)))
    scores = b.input("scores", TensorType(F32, (symbol("n"), symbol("c"), symbol("m"))))
    for made in b.add_all(operator_named("NON_MAX_SUPPRESSION"), boxes, scores):
        b.output(made.name, made)
    program = device.compile(b.build(), Options())
    for images, classes, count in ((1, 1, 0), (2, 2, 3), (2, 1, 0), (2, 0, 3), (0, 1, 2)):
        rows, counts = program.run(
            [
                np.ones((images, count, 4), np.float32),
                np.zeros((images, classes, count), np.float32),
            ]
        )
        assert rows.shape == (0, 6)
        np.testing.assert_array_equal(counts, np.zeros(images, np.int32))
