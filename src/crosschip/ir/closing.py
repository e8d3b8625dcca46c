"""Base of what releases things when its `with` block ends."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Base of what can be used in a `with` statement and is closed at its end."""

    __slots__ = ()

    def close(self) -> None:
        """Release what is held; nothing is done with it afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
