"""Compiled models in the place of one without a device, for other inputs, or with all weights."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from crosschip.hal import DeviceLost
from crosschip.hal.device import OutOfRange
from crosschip.ir import Error, logs
from crosschip.runtime.details import Details

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

logger = logs.logger("crosschip")


class Substitutes:
    """A compiled model for each device without which it has to do, made when it is needed.

    Args:
        name: the model's.
        details: makes them.
    """

    def __init__(self, name: str, details: Details) -> None:
        self._name = name
        self._recompiled_without = details.recompiled_without
        self._recompiled_unconditionally = details.recompiled_unconditionally
        self._anew = details.anew
        self._beyond: CompiledModel | None = None
        self._whole: CompiledModel | None = None
        self._by_device: dict[str, CompiledModel] = {}
        self._lock = threading.Lock()

    def after(self, lost: DeviceLost) -> CompiledModel:
        """The model without a device that is gone.

        Raises:
            DeviceLost: there is no other device, or none that runs the model; the message says why.
        """
        with self._lock:
            substitute = self._by_device.get(lost.device)
            if substitute is not None:
                return substitute
            if self._recompiled_without is None:
                raise lost
            logger.warning("%s: %s; its runs go elsewhere meanwhile", self._name, lost)
            try:
                substitute = self._recompiled_without(lost.device)
            except Error as error:
                message = f"{lost}; and it cannot go elsewhere: {error}"
                raise DeviceLost(message, lost.seconds, lost.device) from error
            self._by_device[lost.device] = substitute
            return substitute

    def beyond(self, error: OutOfRange) -> CompiledModel:
        """The model for inputs that are beyond the range of a device.

        Raises:
            OutOfRange: no other device runs what that one cannot; the message says why.
        """
        with self._lock:
            if self._beyond is None:
                if self._recompiled_unconditionally is None:
                    hint = "add a device that does not, such as `onnxruntime` or `reference`"
                    raise OutOfRange(f"{error}; {hint}") from error
                logger.warning("%s: %s; such runs go elsewhere", self._name, error)
                try:
                    self._beyond = self._recompiled_unconditionally()
                except Error as why:
                    raise OutOfRange(f"{error}; and it cannot go elsewhere: {why}") from why
            return self._beyond

    def whole(self) -> CompiledModel | None:
        """The model with all its weights, if the one whose place it takes came without them.

        Raises:
            ModelFileError: what it was imported from has changed meanwhile.
        """
        with self._lock:
            if self._whole is None and self._anew is not None:
                self._whole = self._anew()
            return self._whole

    def after_fork(self) -> None:
        """Begin anew in a forked process, in which the thread that held the lock may not be."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release them."""
        with self._lock:
            others = [one for one in (self._beyond, self._whole) if one is not None]
            substitutes, self._by_device = [*self._by_device.values(), *others], {}
            self._beyond = self._whole = None
        for one in substitutes:
            one.close()
