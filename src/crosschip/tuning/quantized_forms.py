"""The forms of a model with low-bit weights that a search tries."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crosschip.ir import Error, Model
from crosschip.tuning.int8 import Quantizer, Ranges
from crosschip.tuning.low_bits import convertible, with_low_bit_weights
from crosschip.tuning.samples import Sample
from crosschip.tuning.variants import BITS, INT8, LOW_BIT_FORMS, Form, Variant

logger = logging.getLogger("crosschip")


@dataclass(slots=True)
class QuantizedForms:
    """The forms of one model with low-bit weights.

    Attributes:
        model: the model in float32.
        precisions: the precisions of weights to try: `int8`, `int4`.
        ranges: the ranges of activations for the static form, by calibration method; empty to leave
            the form out.
    """

    model: Model
    precisions: Collection[str] = ()
    ranges: Mapping[str, Ranges] = field(default_factory=dict)
    _quantizer: Quantizer | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        precisions: Collection[str],
        calibrations: Sequence[str],
        samples: Sequence[Sample],
    ) -> QuantizedForms:
        """Return the forms of a model, with ranges calibrated on samples.

        If the static form cannot be created, it is left out and the reason is logged.

        Args:
            model: the model in float32.
            precisions: the precisions of weights.
            calibrations: the calibration methods for the static form, of `int8.METHODS`.
            samples: inputs of the model.
        """
        forms = cls(model, precisions)
        if INT8 not in precisions or not calibrations:
            return forms
        try:
            if forms._static.quantizable:
                forms.ranges = {
                    method: forms._static.ranges(method, samples) for method in calibrations
                }
                return forms
            reason = "it has no convolutions or matrix products in float32"
        except Error as error:
            reason = str(error)
        except Exception as error:  # any exception of foreign code is its failure
            reason = f"the quantizer fails: {error}"
        logger.info("%s: static int8 is not tried, since %s", model.name, reason)
        return forms

    def variants(self, device: str) -> Iterator[Variant]:
        """Return the variant of each form on a device, with all convertible operations in it."""
        for method, ranges in self.ranges.items():
            yield Variant(device, INT8, form=Form.STATIC, calibration=method, ranges=ranges)
        for precision, form in LOW_BIT_FORMS:
            if precision in self.precisions and convertible(self.model, form):
                yield Variant(device, precision, form=form)

    def convertible(self, form: Form) -> frozenset[str]:
        """Return the names of the operations that a form changes."""
        if form is Form.STATIC:
            return self._static.quantizable
        return convertible(self.model, form)

    def convert(self, variant: Variant) -> Model:
        """Return the model in the form of a variant; unchanged for a variant without a form."""
        if variant.form is None:
            return self.model
        if variant.form is Form.STATIC:
            return self._static.quantize(variant.ranges, variant.exact)
        bits = BITS[variant.precision]
        return with_low_bit_weights(self.model, variant.form, bits, variant.exact)

    @property
    def _static(self) -> Quantizer:
        if self._quantizer is None:
            self._quantizer = Quantizer(self.model)
        return self._quantizer
