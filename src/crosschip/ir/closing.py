"""Base class of context managers that close themselves."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Base class of objects that a `with` statement closes at its end."""

    __slots__ = ()

    def close(self) -> None:
        """Release the object's resources; it must not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
