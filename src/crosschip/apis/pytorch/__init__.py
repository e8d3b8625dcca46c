"""`torch.compile(model, backend="crosschip")`: graphs that PyTorch captures run on the devices.

PyTorch imports this by the entry point `torch_dynamo_backends`. A graph that crosschip cannot take
runs in PyTorch: one that changes its inputs, draws random numbers, needs gradients, or has
operators that no device runs. The log says so, and so does `captured_graphs`.

Example:
    model = torch.compile(model, backend="crosschip", options={"devices": ["openvino"]})
    with torch.inference_mode():
        model(x)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosschip.apis.pytorch.report import CapturedGraph as CapturedGraph
from crosschip.apis.pytorch.report import captured_graphs as captured_graphs


def backend(
    graph_module: Any,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile a graph; `torch.compile` calls this.

    Args:
        graph_module: the `torch.fx.GraphModule`.
        example_inputs: its inputs: weights, tensors of the caller, and sizes.
        mode: ignored; it tunes PyTorch's own compiler.
        options: arguments for `crosschip.compile`, by name.

    Returns:
        A function with the same inputs and outputs.

    Raises:
        InputError: `crosschip.compile` does not take the options.
        DeviceError: a device is unknown or failed to load.
    """
    from crosschip.apis.pytorch.graphs import compile_graph

    return compile_graph(graph_module, example_inputs, dict(options or {}))
