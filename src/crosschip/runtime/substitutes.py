"""Substitutes of a compiled model: without a lost device, for other inputs, with all weights."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from crosschip.hal import DeviceLost
from crosschip.hal.device import OutOfRange
from crosschip.ir import Error
from crosschip.runtime.details import Details

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

logger = logging.getLogger("crosschip")


class Substitutes:
    """Compiled models that replace another one, compiled on first use.

    Args:
        name: the name of the model.
        details: compiles the substitutes.
    """

    def __init__(self, name: str, details: Details) -> None:
        self._name = name
        self._recompiled_without = details.recompiled_without
        self._recompiled_without_conditions = details.recompiled_without_conditions
        self._compile_again = details.recompiled
        self._model_without_conditions: CompiledModel | None = None
        self._with_weights: CompiledModel | None = None
        self._by_device: dict[str, CompiledModel] = {}
        self._lock = threading.Lock()

    def after(self, error: DeviceLost | OutOfRange) -> CompiledModel:
        """Return the compiled model for the run that failed with an error.

        Raises:
            DeviceLost, OutOfRange: no other device runs the model; the message says why.
        """
        if isinstance(error, DeviceLost):
            return self._without_device(error)
        return self._without_conditions(error)

    def _without_device(self, lost: DeviceLost) -> CompiledModel:
        """Return the model compiled without a lost device.

        Raises:
            DeviceLost: there is no other device, or none that runs the model; the message says why.
        """
        with self._lock:
            substitute = self._by_device.get(lost.device)
            if substitute is not None:
                return substitute
            if self._recompiled_without is None:
                raise lost
            logger.warning("%s: %s; other devices run the model until it is back", self._name, lost)
            try:
                substitute = self._recompiled_without(lost.device)
            except Error as error:
                message = f"{lost}; and no other device runs the model: {error}"
                raise DeviceLost(message, lost.seconds, lost.device) from error
            self._by_device[lost.device] = substitute
            return substitute

    def _without_conditions(self, error: OutOfRange) -> CompiledModel:
        """Return the model compiled for inputs beyond the range of a device.

        Raises:
            OutOfRange: no other device runs the operations that the device cannot; the message
                says why.
        """
        with self._lock:
            if self._model_without_conditions is None:
                if self._recompiled_without_conditions is None:
                    hint = (
                        "add a device that computes in the full element type, such as "
                        "`onnxruntime` or `reference`"
                    )
                    raise OutOfRange(f"{error}; {hint}") from error
                logger.warning("%s: %s; other devices execute such runs", self._name, error)
                try:
                    self._model_without_conditions = self._recompiled_without_conditions()
                except Error as why:
                    message = f"{error}; and no other device executes this run: {why}"
                    raise OutOfRange(message) from why
            return self._model_without_conditions

    def whole(self) -> CompiledModel | None:
        """Return the model with all its weights; `None` if the original has them.

        Raises:
            ModelFileError: the file that it was imported from has changed.
        """
        with self._lock:
            if self._with_weights is None and self._compile_again is not None:
                self._with_weights = self._compile_again()
            return self._with_weights

    def after_fork(self) -> None:
        """Replace the lock in a forked process, in which the thread that held it may be missing."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the substitutes."""
        with self._lock:
            others = [
                one
                for one in (self._model_without_conditions, self._with_weights)
                if one is not None
            ]
            substitutes, self._by_device = [*self._by_device.values(), *others], {}
            self._model_without_conditions = self._with_weights = None
        for one in substitutes:
            one.close()
