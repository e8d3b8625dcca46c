"""Compiled models that take the place of one that has lost a device."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from crosschip.hal import DeviceLost
from crosschip.ir import Error

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

Elsewhere = Callable[[str], "CompiledModel"]
"""Compiles the model for all devices but the one of that name."""

logger = logging.getLogger("crosschip")


class Substitutes:
    """A compiled model for each device without which it has to do, made when it is needed.

    Args:
        name: the model's.
        elsewhere: makes one; `None` if there is no other device.
    """

    def __init__(self, name: str, elsewhere: Elsewhere | None) -> None:
        self._name = name
        self._elsewhere = elsewhere
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

    def close(self) -> None:
        """Release them."""
        with self._lock:
            made, self._made = list(self._made.values()), {}
        for one in made:
            one.close()
