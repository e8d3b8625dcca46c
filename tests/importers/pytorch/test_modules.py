"""Modules of PyTorch compute what PyTorch computes, with sizes that they were not exported with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from corpus.made import hugging_face, torch_networks
from corpus.made._exporting import AXES, Given
from tests.importers.pytorch.modules import MODULES, SIZES, Case

import crosschip

DAILY = ("LSTM",)
DEVICES = ("reference", "onnxruntime", "openvino", "xla")
ALL = [pytest.param(name, marks=() if name in DAILY else pytest.mark.nightly) for name in MODULES]


def leaves(result: Any) -> list[Any]:
    """Return the tensors of a module's result in order."""
    if isinstance(result, Mapping):
        return [leaf for value in result.values() for leaf in leaves(value)]
    if isinstance(result, tuple | list):
        return [leaf for value in result for leaf in leaves(value)]
    return [] if result is None else [result]


def check(
    module: Any,
    model: crosschip.Model,
    device: str,
    inputs: Sequence[tuple[Any, ...]],
    tolerance: float = 1e-5,
) -> None:
    """Compare a model with its module on a device, with `reference` for what it lacks."""
    import torch

    devices = list(dict.fromkeys([device, "reference"]))
    with crosschip.compile(model, devices, cache=False) as compiled:
        for tensors in inputs:
            with torch.no_grad():
                expected = leaves(module(*tensors))
            outputs = compiled.run(dict(zip(compiled.inputs, tensors, strict=True)))
            for output, reference in zip(outputs.values(), expected, strict=True):
                scale = max(1.0, float(reference.abs().max()))
                np.testing.assert_allclose(
                    output, reference.numpy(), rtol=1e-4, atol=tolerance * scale
                )


@pytest.mark.parametrize("name", ALL)
def test_a_module_of_pytorch(name: str) -> None:
    case = MODULES[name]
    module = case.module()
    model = crosschip.load(
        module, example_inputs=case.tensors(SIZES[0]), dynamic_shapes=case.dynamic_shapes()
    )
    sizes = [size for given in case.dynamic_shapes() for size in given.values()]
    declared = [
        str(size)
        for operand in model.inputs.values()
        for size in operand.type.shape or ()
        if not isinstance(size, int)
    ]
    assert declared == sizes
    devices = DEVICES[:2] if name in DAILY else DEVICES
    for device in devices:
        check(module, model, device, [case.tensors(sizes) for sizes in SIZES])


def tensors_of(inputs: Mapping[str, Given], axes: Mapping[str, int]) -> tuple[Any, ...]:
    case = Case(lambda nn: nn.Identity(), list(inputs.values()))
    return case.tensors(axes)


@pytest.mark.nightly
@pytest.mark.parametrize("name", torch_networks.NETWORKS)
def test_a_network_of_the_corpus(name: str) -> None:
    import torch

    torch.manual_seed(3)
    network = torch_networks.NETWORKS[name]
    module = network.build().eval()
    case = Case(lambda nn: module, list(network.inputs.values()))
    other = {**AXES, "batch": 3, "steps": 9, "height": 32, "width": 48}
    examples = [case.tensors(AXES), case.tensors(other)]
    model = crosschip.load(module, example_inputs=examples[0], dynamic_shapes=case.dynamic_shapes())
    for device in DEVICES:
        check(module, model, device, examples)


@pytest.mark.nightly
@pytest.mark.parametrize("name", hugging_face.NETWORKS)
def test_a_network_of_hugging_face(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(7)
    network = hugging_face.NETWORKS[name]
    config = getattr(transformers, network.config)(**network.settings)
    module = hugging_face._flat(getattr(transformers, network.model)(config).eval(), network)
    case = Case(lambda nn: module, list(network.inputs.values()))
    other = {**AXES, "batch": 3}
    examples = [case.tensors(AXES), case.tensors(other)]
    model = crosschip.load(
        module, example_inputs=examples[0], dynamic_shapes=(case.dynamic_shapes(),)
    )
    for device in DEVICES[:3]:
        check(module, model, device, examples)
