"""An extension of griffe: the signatures of data classes that crosschip's own decorator makes."""

from __future__ import annotations

from typing import Any

from griffe import Class, ExprCall, ExprName, Extension

DECORATOR = "crosschip.ir.dataclass.dataclass"


class OwnDataclasses(Extension):  # type: ignore[misc]
    """Lets griffe see `crosschip.ir.dataclass.dataclass` as `dataclasses.dataclass`."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Rewrite the decorators of a class before griffe's own extension reads them."""
        for decorator in cls.decorators:
            if decorator.callable_path != DECORATOR:
                continue
            standard = ExprName("dataclasses.dataclass")
            if isinstance(decorator.value, ExprCall):
                decorator.value.function = standard
            else:
                decorator.value = standard
