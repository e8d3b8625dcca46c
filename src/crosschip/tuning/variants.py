"""Variants of a model: the device, the precision, and the operations that stay in float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from crosschip.hal import Precision

INT8, INT4 = "int8", "int4"
FLOAT32 = Precision.FLOAT32.value


class Form(StrEnum):
    """Forms of a model with weights in int8 or int4."""

    STATIC = "static"
    """Weights and activations in int8; the ranges of activations are calibrated on samples."""
    DYNAMIC = "dynamic"
    """Weights and activations in int8; the ranges of activations are computed in each run."""
    WEIGHTS = "weights"
    """Weights in int8 with a scale per column; float32 arithmetic."""
    BLOCKS = "weights in blocks"
    """Weights in int8 or int4 with a scale per block; the device chooses the arithmetic."""


LOW_BIT_FORMS = (
    (INT8, Form.DYNAMIC),
    (INT8, Form.WEIGHTS),
    (INT8, Form.BLOCKS),
    (INT4, Form.BLOCKS),
)
"""The forms that need no ranges of activations, each with the precision of its weights."""

BITS = {INT8: 8, INT4: 4}
"""The bits of a weight in the precisions whose weights are integers."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a model.

    Attributes:
        device: the name of the device.
        precision: `float32`, `bfloat16`, `float16`, `int8` or `int4`.
        exact: the names of the operations that stay in float32; all others are in `precision`.
        form: the form of `int8` or `int4` weights; `None` for other precisions.
        calibration: the calibration method of the static form; otherwise empty.
        ranges: the least and the greatest value of each quantized activation, by its name in the
            quantizer's file, for the static form; otherwise empty.
    """

    device: str
    precision: str = FLOAT32
    exact: tuple[str, ...] = ()
    form: Form | None = None
    calibration: str = ""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The variant in short, as in `openvino int8 static (percentile), 3 in float32`."""
        form = f" {self.form}" if self.form else ""
        calibration = f" ({self.calibration})" if self.calibration else ""
        exact = f", {len(self.exact)} in float32" if self.exact else ""
        return f"{self.device} {self.precision}{form}{calibration}{exact}"

    @property
    def devices(self) -> list[str]:
        """The devices to compile for: one device, in one precision or in two."""
        if self.precision == FLOAT32 or self.form:
            return [self.device]
        local, at, where = self.device.partition("@")
        return [f"{local}/{self.precision}{at}{where}", self.device]

    @property
    def pins(self) -> Mapping[str, str] | None:
        """The device of each operation that stays in float32, if there are two."""
        if len(self.devices) == 1 or not self.exact:
            return None
        return dict.fromkeys(self.exact, self.device)
