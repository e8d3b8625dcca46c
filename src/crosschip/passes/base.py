"""Passes, and running them."""

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
    """A rewriting of models, with its settings as fields: `repr` shows what was run.

    A pass gets a model that `Model.verify` accepts and returns one, without changing the first: the
    same one if there was nothing to do. It is linear in the number of operations.

    Attributes:
        exact: whether every output stays as it was, bit for bit; otherwise up to floating-point
            rounding.
    """

    exact: ClassVar[bool] = True

    def __call__(self, model: Model) -> Model:
        """The rewritten model; when verifying, it is checked if it is another one.

        Raises:
            Error: the model lacks what the pass requires.
            ModelError: when verifying, the pass broke a promise; the message names it.
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
        """The rewritten model, unchecked."""

    def requires(self, model: Model) -> None:  # noqa: B027 - most passes take any model
        """Check that the pass can be run on a model; always done before it is.

        Raises:
            Error: it cannot.
        """

    def ensures(self, before: Model, after: Model) -> None:
        """Check what the pass promises of the model that it returned; done when verifying.

        Every pass promises what callers see: the names, order and types of inputs and outputs, of
        which sizes may have become known.

        Raises:
            ModelError: the promise is broken; the message names the operation or the operand.
        """
        _keep("input", before.inputs, after.inputs)
        _keep("output", before.outputs, after.outputs)


def run(model: Model, passes: Iterable[Pass]) -> Model:
    """Apply passes in order.

    Raises:
        Error: a pass requires something that the model lacks.
        ModelError: when verifying, a pass broke a promise; the message names it.
    """
    for step in passes:
        model = step(model)
    return model


def verifying() -> bool:
    """Tell whether every pass is followed by a check: inside `verified`, or by `CROSSCHIP_VERIFY`.

    The environment variable says yes by any value but an empty one and 0.
    """
    here = _verifying.get()
    return os.environ.get("CROSSCHIP_VERIFY", "0") not in ("", "0") if here is None else here


@contextmanager
def verified(on: bool = True) -> Iterator[None]:
    """Check models after every pass inside the block, or do not, whatever the environment says."""
    token = _verifying.set(on)
    try:
        yield
    finally:
        _verifying.reset(token)


def _keep(kind: str, before: Mapping[str, Operand], after: Mapping[str, Operand]) -> None:
    """`ModelError` if inputs or outputs are not what they were."""
    if list(after) != list(before):
        raise ModelError(f"the {kind}s are {list(after)}, but were {list(before)}")
    for name, operand in before.items():
        was, is_ = operand.type, after[name].type
        if not is_.fits(was) or not _knows(is_.shape, was.shape):
            raise ModelError(f"{kind} {name!r} is {is_}, but was {was}")


def _knows(shape: Shape | None, least: Shape | None) -> bool:
    """Tell whether a shape that fits another one knows all sizes that it knows."""
    if least is None or shape is None:
        return least is None
    return all(
        isinstance(size, int) or not isinstance(known, int)
        for size, known in zip(shape, least, strict=True)
    )
