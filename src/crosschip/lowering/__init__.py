"""Legalization: a model becomes one that a device runs.

Each module adapts one property of models to a target: operators (`decomposition`), element types
(`type_conversion`), ranges of integers (`narrowing` with `ranges`), precision (`mixed_precision`),
open sizes (`static_shapes`). `capability_check` declines what no rewrite helps.
"""
