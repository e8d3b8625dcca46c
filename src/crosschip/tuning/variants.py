"""Ways to compute a model: on which device, in which arithmetic, and which operations otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosschip.hal import Precision

INT8 = "int8"
FLOAT32 = Precision.FLOAT32.value


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to compute a model.

    Attributes:
        device: the device's name.
        precision: `float32`, `bfloat16`, `float16` or `int8`.
        exact: the names of the operations that stay in float32; all others are in `precision`.
        calibration: how the ranges of quantized tensors were found; empty where none is quantized.
        ranges: the least and the greatest value of each quantized tensor, by its name in the file
            that the quantizer reads.
    """

    device: str
    precision: str = FLOAT32
    exact: tuple[str, ...] = ()
    calibration: str = ""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The variant in short, as in `openvino int8 (percentile), 3 in float32`."""
        how = f" ({self.calibration})" if self.calibration else ""
        left = f", {len(self.exact)} in float32" if self.exact else ""
        return f"{self.device} {self.precision}{how}{left}"

    @property
    def devices(self) -> list[str]:
        """The devices to compile for: one chip, in one precision or in two."""
        if self.precision in (FLOAT32, INT8):
            return [self.device]
        local, at, where = self.device.partition("@")
        return [f"{local}/{self.precision}{at}{where}", self.device]

    @property
    def pins(self) -> Mapping[str, str] | None:
        """The operations that only one of `devices` may run."""
        if self.precision in (FLOAT32, INT8) or not self.exact:
            return None
        return dict.fromkeys(self.exact, self.device)
