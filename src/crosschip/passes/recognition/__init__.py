"""Recognition of composite operators that a model spells out in simpler ones."""

from crosschip.passes.recognition.attention import ATTENTION, JOINED_HEADS
from crosschip.passes.recognition.formulas import ACTIVATIONS, NORMALIZATIONS
from crosschip.passes.recognition.recognize import Recognize

COMPOSITES = (*ACTIVATIONS, *NORMALIZATIONS, ATTENTION)
"""The patterns of all composite operators that are recognized."""

__all__ = ["COMPOSITES", "JOINED_HEADS", "Recognize"]
