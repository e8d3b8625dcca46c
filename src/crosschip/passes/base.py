"""The `Pass` interface, pass pipelines, and verification after each pass."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

from crosschip.ir import Model, ModelError, Operand, Shape
from crosschip.ir.dataclass import dataclass

_verifying: ContextVar[bool | None] = ContextVar("verifying", default=None)


@dataclass(frozen=True)
class Pass(ABC):
    """A rewrite of models. Its settings are fields, so that `repr` shows what ran.

    A pass takes a model that `Model.verify` accepts and returns a new one, or the same object if
    nothing changed. It never modifies its argument. Its cost is linear in the number of operations.

    Attributes:
        exact: whether all outputs stay bit-identical; otherwise they may differ by floating-point
            rounding.
    """

    exact: ClassVar[bool] = True

    def __call__(self, model: Model) -> Model:
        """Rewrite a model; if verification is on, check the result.

        Raises:
            Error: the model does not meet the pass's requirements.
            ModelError: verification is on and the pass broke a guarantee; the message names it.
        """
        self.requires(model)
        after = self.rewrite(model)
        if after is not model and verifying():
            try:
                after.verify()
                self.ensures(model, after)
            except ModelError as error:
                raise ModelError(f"{self} broke {model.name!r}: {error}") from None
        return after

    @abstractmethod
    def rewrite(self, model: Model) -> Model:
        """Rewrite the model without checks."""

    def requires(self, model: Model) -> None:  # noqa: B027 - most passes take any model
        """Check that the pass can run on a model; always called first.

        Raises:
            Error: the pass cannot run on this model.
        """

    def ensures(self, before: Model, after: Model) -> None:
        """Check what the pass guarantees about its result; called if verification is on.

        All passes keep the names, order and types of inputs and outputs; only dynamic dimensions
        may become static.

        Raises:
            ModelError: a guarantee is broken; the message names the operation or the operand.
        """
        _check_interface("input", before.inputs, after.inputs)
        _check_interface("output", before.outputs, after.outputs)


def run(model: Model, passes: Iterable[Pass]) -> Model:
    """Apply passes in order.

    Raises:
        Error: the model does not meet a pass's requirements.
        ModelError: verification is on and a pass broke a guarantee; the message names it.
    """
    for step in passes:
        model = step(model)
    return model


def verifying() -> bool:
    """Return whether models are verified after each pass.

    Inside a `verified` block, its argument decides. Outside, the environment variable
    `CROSSCHIP_VERIFY` turns verification on, unless it is empty or 0.
    """
    in_block = _verifying.get()
    return (
        os.environ.get("CROSSCHIP_VERIFY", "0") not in ("", "0") if in_block is None else in_block
    )


@contextmanager
def verified(on: bool = True) -> Iterator[None]:
    """Turn verification after each pass on or off inside the block, overriding the environment."""
    token = _verifying.set(on)
    try:
        yield
    finally:
        _verifying.reset(token)


def _check_interface(
    kind: str, before: Mapping[str, Operand], after: Mapping[str, Operand]
) -> None:
    """Raise ModelError unless inputs or outputs keep their names, order and types."""
    if list(after) != list(before):
        raise ModelError(f"the {kind}s are {list(after)}, but were {list(before)}")
    for name, operand in before.items():
        was, is_ = operand.type, after[name].type
        if not is_.fits(was) or not _is_as_static(is_.shape, was.shape):
            raise ModelError(f"{kind} {name!r} is {is_}, but was {was}")


def _is_as_static(shape: Shape | None, reference: Shape | None) -> bool:
    """Return whether a shape is static wherever the reference shape that it fits is static."""
    if reference is None or shape is None:
        return reference is None
    return all(
        isinstance(size, int) or not isinstance(other, int)
        for size, other in zip(shape, reference, strict=True)
    )
