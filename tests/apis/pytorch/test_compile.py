"""`torch.compile(model, backend="crosschip")`: PyTorch's answers, and what ran where."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.importers.pytorch.modules import MODULES, SIZES
from tests.importers.pytorch.test_modules import leaves

from crosschip.apis.pytorch import CapturedGraph, captured_graphs
from crosschip.ir import InputError

COMPILED = (
    *("Linear", "Conv1d", "Conv2d", "ConvTranspose2d", "MultiheadAttention", "SelfAttention"),
    *(
        "TransformerEncoderLayer",
        "TransformerEncoder",
        "TransformerDecoder",
        "Transformer",
        "Embedding",
        "BatchNorm2d",
    ),
    *("LayerNorm", "GroupNorm", "RMSNorm", "MaxPool2d", "AdaptiveAvgPool2d", "Upsample"),
    *("PixelShuffle", "GELU", "CosineSimilarity", "CrossEntropyLoss"),
)
OPTIONS = {"devices": ["onnxruntime"], "cache": False}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """PyTorch forgets the graphs of earlier tests."""
    import torch

    torch._dynamo.reset()


def run(module: Any, inputs: Sequence[tuple[Any, ...]]) -> list[CapturedGraph]:
    """Compare a compiled module with PyTorch; return the graphs that were captured."""
    import torch

    before = captured_graphs()
    compiled = torch.compile(module, backend="crosschip", options=OPTIONS)
    with torch.inference_mode():
        for tensors in inputs:
            copies = [tensor.clone() for tensor in tensors]
            for output, expected in zip(
                leaves(compiled(*tensors)), leaves(module(*copies)), strict=True
            ):
                assert output.dtype == expected.dtype
                scale = max(1.0, float(expected.abs().max()))
                np.testing.assert_allclose(
                    output.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5 * scale
                )
    return [graph for graph in captured_graphs() if graph not in before]


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_module(name: str) -> None:
    case = MODULES[name]
    graphs = run(case.module(), [case.tensors(sizes) for sizes in SIZES])
    assert graphs
    assert not [graph.reason for graph in graphs if graph.reason]


def breaking_modules() -> list[Any]:
    """Return two modules whose control flow depends on elements."""
    import torch
    from torch import nn

    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.first(x))
            y = self.second(y) if y.sum() > 0 else self.second(y * 2)
            return y.softmax(-1)

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            return torch.tanh(self.layer(x))

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.step = Step()

        def forward(self, x: Any) -> Any:
            for _ in range(3):
                x = self.step(x)
                if x.abs().max().item() < 0.01:
                    break
            return {"state": x}

    torch.manual_seed(2)
    return [Branch().eval(), Loop().eval()]


@pytest.mark.nightly
@pytest.mark.parametrize("index", [0, 1], ids=["branch", "loop"])
def test_a_module_with_graph_breaks(index: int) -> None:
    import torch

    inputs = [(torch.randn(2, 8),), (torch.randn(3, 8),)]
    graphs = run(breaking_modules()[index], inputs)
    assert len(graphs) >= 2
    assert all(dict(graph.operations).keys() == {"onnxruntime"} for graph in graphs)
    assert "operations: " in str(graphs[0])


def test_what_pytorch_runs_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    import torch

    def add_in_place(x: Any) -> Any:
        return x.add_(1) * 2

    def view(x: Any) -> Any:
        return x.view(-1), x + 1

    def draw(x: Any) -> Any:
        return x * 0 + torch.rand(1).ceil()

    for function, reason in [
        (add_in_place, "changes 'tensors_0' in place"),
        (view, "shares the memory of an input"),
        (draw, "draws random numbers"),
    ]:
        (graph,) = run(function, [(torch.ones(2, 3),)])
        assert reason in graph.reason
        assert not graph.operations
        assert f"graph {graph.number} runs in PyTorch: " in caplog.text


def test_gradients_are_pytorchs() -> None:
    import torch

    module = torch.nn.Linear(3, 2)
    compiled = torch.compile(module, backend="crosschip", options=OPTIONS)
    compiled(torch.ones(1, 3)).sum().backward()
    assert module.weight.grad is not None
    assert "needs gradients; call the model in `with torch.inference_mode" in str(
        captured_graphs()[-1]
    )


@pytest.mark.nightly
def test_changed_weights_are_used() -> None:
    import torch

    module = torch.nn.Linear(3, 2)
    compiled = torch.compile(module, backend="crosschip", options=OPTIONS)
    x = torch.ones(1, 3)
    for _ in range(2):
        with torch.no_grad():
            np.testing.assert_allclose(compiled(x), module(x), rtol=1e-5)
            module.bias.add_(1)


def test_options_are_checked() -> None:
    import torch

    compiled = torch.compile(torch.nn.ReLU(), backend="crosschip", options={"device": "x"})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as caught:
        compiled(torch.ones(2))
    assert isinstance(caught.value.inner_exception, InputError)
    assert "unexpected keyword argument 'device'" in str(caught.value)


@pytest.mark.nightly
def test_bfloat16_and_integers() -> None:
    import torch

    def convert(x: Any, ids: Any) -> Any:
        return x.to(torch.bfloat16) + 1, ids * 2, ids > 1

    before = len(captured_graphs())
    options = {**OPTIONS, "devices": ["onnxruntime", "reference"]}
    compiled = torch.compile(convert, backend="crosschip", options=options)
    x, ids = torch.randn(2, 3), torch.arange(4)
    for output, expected in zip(compiled(x, ids), convert(x, ids), strict=True):
        assert output.dtype == expected.dtype
        assert torch.equal(output, expected)
    assert not captured_graphs()[before].reason


def test_importing_the_entry_point_imports_no_pytorch() -> None:
    program = """
        import sys, crosschip.apis.pytorch
        assert "torch" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
