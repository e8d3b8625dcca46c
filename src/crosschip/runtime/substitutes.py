"""Compiled models that take the place of one that has lost a device, or is not for some inputs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from crosschip.hal import DeviceLost
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import Error

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

Elsewhere = Callable[[str], "CompiledModel"]
"""Compiles the model for all devices but the one of that name."""

ForAllInputs = Callable[[], "CompiledModel"]
"""Compiles the model so that it runs on inputs which a device computes wrong, too."""

logger = logging.getLogger("crosschip")


class Substitutes:
    """A compiled model for each device without which it has to do, made when it is needed.

    Args:
        name: the model's.
        elsewhere: makes one; `None` if there is no other device.
        for_all_inputs: makes one that runs on inputs beyond the range of a device; `None` if there
            is no other device.
    """

    def __init__(
        self, name: str, elsewhere: Elsewhere | None, for_all_inputs: ForAllInputs | None
    ) -> None:
        self._name = name
        self._elsewhere = elsewhere
        self._for_all_inputs = for_all_inputs
        self._beyond: CompiledModel | None = None
        self._made: dict[str, CompiledModel] = {}
        self._lock = threading.Lock()

    def after(self, lost: DeviceLost) -> CompiledModel:
        """The model without a device that is gone.

        Raises:
            DeviceLost: there is no other device, or none that runs the model; the message says why.
        """
        with self._lock:
            made = self._made.get(lost.device)
            if made is not None:
                return made
            if self._elsewhere is None:
                raise lost
            logger.warning("%s: %s; its runs go elsewhere meanwhile", self._name, lost)
            try:
                made = self._elsewhere(lost.device)
            except Error as error:
                told = f"{lost}; and it cannot go elsewhere: {error}"
                raise DeviceLost(told, lost.seconds, lost.device) from error
            self._made[lost.device] = made
            return made

    def beyond(self, error: OutOfRange) -> CompiledModel:
        """The model for inputs that are beyond the range of a device.

        Raises:
            OutOfRange: no other device runs what that one cannot; the message says why.
        """
        with self._lock:
            if self._beyond is None:
                if self._for_all_inputs is None:
                    hint = "add a device that does not, such as `onnxruntime` or `reference`"
                    raise OutOfRange(f"{error}; {hint}") from error
                logger.warning("%s: %s; such runs go elsewhere", self._name, error)
                try:
                    self._beyond = self._for_all_inputs()
                except Error as why:
                    raise OutOfRange(f"{error}; and it cannot go elsewhere: {why}") from why
            return self._beyond

    def close(self) -> None:
        """Release them."""
        with self._lock:
            made, self._made = list(self._made.values()), {}
            if self._beyond is not None:
                made.append(self._beyond)
                self._beyond = None
        for one in made:
            one.close()
