"""Directives of a caller: partition configurations, pins and limits, and what they constrain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosschip.ir import InputError, Model, Operation
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.hal import Kind
    from crosschip.runtime.placement.constraints import Constraints, Home


@dataclass(frozen=True, slots=True)
class Directives:
    """A caller's words about placement.

    Attributes:
        partition: operators that are kept off the first device and run on processors: the path of a
            configuration, or its content.
        pin: the device that alone may run what a pattern names.
        min_segment: the fewest operations that are worth a segment of their own.
        max_segments: how many segments there may be at most.
        strict: whether it is an error if an operation does not go where it is preferred.
    """

    partition: str | bytes | Path | None = None
    pin: Mapping[str, str] | None = None
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False

    @property
    def moves(self) -> bool:
        """Tell whether operations may go elsewhere than the devices' answers send them."""
        limits = self.min_segment > 1 or self.max_segments is not None
        return self.partition is not None or bool(self.pin) or limits

    def words(self) -> tuple[object, ...]:
        """The directives as plain values, with the content of a configuration in a file.

        Raises:
            InputError: a configuration is not of its form, or cannot be read.
        """
        listed: list[str] = []
        if self.partition is not None:
            # Its form is needed only where there is one.
            from crosschip.runtime.placement.partition import words_of

            listed = words_of(self.partition)
        pins = [*(self.pin or {}).items()]
        return listed, pins, self.min_segment, self.max_segments, self.strict

    def check(self) -> None:
        """Refuse values that are none.

        Raises:
            InputError: there is one.
        """
        for name, value in (("min_segment", self.min_segment), ("max_segments", self.max_segments)):
            number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not number and not (value is None and name == "max_segments"):
                raise InputError(f"{name} is {value!r}, but must be an integer of at least 1")
        if not isinstance(self.strict, bool):
            raise InputError(f"strict is {self.strict!r}, but must be True or False")
        pin = {} if self.pin is None else self.pin
        if not isinstance(pin, Mapping) or not all(
            isinstance(text, str) for pair in pin.items() for text in pair
        ):
            raise InputError(
                f'pin is {pin!r}, but must be devices by pattern, like {{"conv2d": "openvino"}}'
            )

    def constraints(self, model: Model, given: Model, kinds: Mapping[str, Kind]) -> Constraints:
        """The meaning for a model; warns of entries that match nothing.

        Args:
            model: what is to be placed.
            given: the model before passes.
            kinds: the sort of each device, by name, in the order of preference.

        Raises:
            InputError: a configuration is not of its form, a pin names no device or nothing of the
                model, or there is no processor for what a configuration lists.
        """
        # What the directives mean is asked only where something is placed.
        from crosschip.runtime.placement.constraints import Constraints

        return Constraints(
            self._homes(model, given, kinds), self.min_segment, self.max_segments, self.strict
        )

    def _homes(
        self, model: Model, given: Model, kinds: Mapping[str, Kind]
    ) -> Mapping[Operation, Home]:
        """The homes of the operations that are named, if any are."""
        if self.partition is None and not self.pin:
            return {}
        # Seldom needed: placing a model is to take no longer for it.
        from crosschip.runtime.placement.constraining import homes

        return homes(self.partition, self.pin or {}, model, given, kinds)
