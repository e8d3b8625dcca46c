"""A chip that registers itself with PyTorch, as packages of vendors do: NumPy on the processor.

PyTorch's own way for a backend in Python (`torch.utils.backend_registration`); an operation is
computed by PyTorch on the processor, from the array behind each tensor and to one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "own"
CALLS: list[str] = []
"""The operations that the chip has run."""


class OwnTensor(torch.Tensor):
    """A tensor of the chip.

    Attributes:
        on_host: its elements.
    """

    on_host: torch.Tensor


def _wrapped(on_host: torch.Tensor) -> OwnTensor:
    tensor = torch._C._acc.create_empty_tensor(on_host.shape, on_host.dtype)
    tensor.__class__ = OwnTensor
    tensor.on_host = on_host.contiguous()
    result: OwnTensor = tensor
    return result


def _compute(op: Any, *arguments: Any, **named: Any) -> Any:
    """Run an operation on the arrays of its tensors."""
    CALLS.append(str(op))

    def unwrap(value: Any) -> Any:
        if isinstance(value, OwnTensor):
            return value.on_host
        return torch.device("cpu") if isinstance(value, torch.device) else value

    arguments, named = pytree.tree_map(unwrap, (arguments, named))
    result = op(*arguments, **named)
    return pytree.tree_map(lambda x: _wrapped(x) if isinstance(x, torch.Tensor) else x, result)


def _copy(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy between the chip and the host."""
    elements = source.on_host if isinstance(source, OwnTensor) else source
    if isinstance(target, OwnTensor):
        target.on_host = elements.to(target.dtype).clone()
    else:
        target.copy_(elements)
    return target


class _Module(_DummyBackendModule):
    """What becomes `torch.own`: each call has ended when it returns."""

    def synchronize(self) -> None:
        CALLS.append("synchronize")


def register() -> None:
    """Register the chip in this process; PyTorch has one such chip."""
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    for name in ("empty.memory_format", "empty_strided"):
        torch.library.impl(f"aten::{name}", "PrivateUse1")(_empty)
    torch.library.impl("aten::_copy_from", "PrivateUse1")(_copy)
    library = torch.library.Library("_", "IMPL")
    library.fallback(_compute, "PrivateUse1")
    globals()["_library"] = library  # as long as the process


def _empty(size: Any, *_: Any, dtype: torch.dtype | None = None, **__: Any) -> OwnTensor:
    return _wrapped(torch.zeros(size, dtype=dtype or torch.float32))
