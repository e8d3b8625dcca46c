"""The priorities of requests."""

from __future__ import annotations

from enum import IntEnum

from crosschip.ir import InputError


class Priority(IntEnum):
    """The priority of a waiting request; equal ones are served in the order of arrival.

    The names and values are those of NNRt.
    """

    NONE = 0
    """No priority: after all others."""
    LOW = 1
    MEDIUM = 2
    HIGH = 3

    @classmethod
    def of(cls, value: object) -> Priority:
        """Return the priority of a member or number; raise `InputError` if there is none."""
        try:
            return cls(value)  # type: ignore[arg-type]  # what it raises is caught
        except ValueError:
            names = ", ".join(cls.__members__)
            raise InputError(f"there is no priority {value!r}; there are {names}") from None
