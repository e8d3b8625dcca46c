"""The names of all single-operator files that are made at random."""

from __future__ import annotations

from tests.importers.tflite.custom_cases import CUSTOM
from tests.importers.tflite.integer_cases import INTEGERS
from tests.importers.tflite.layer_cases import LAYERS
from tests.importers.tflite.lookup_cases import LOOKUPS
from tests.importers.tflite.operator_cases import OPERATORS
from tests.importers.tflite.random_cases import RANDOM
from tests.importers.tflite.stablehlo_cases import STABLEHLO

NAMES = tuple(
    dict.fromkeys((*OPERATORS, *INTEGERS, *LAYERS, *LOOKUPS, *RANDOM, *STABLEHLO, *CUSTOM))
)
