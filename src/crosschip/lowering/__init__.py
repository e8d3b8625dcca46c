"""Legalization: rewrites of a model into one that a device supports.

Each module adapts one property of models to a target: operators (`decomposition`), element types
(`type_conversion`), integer ranges (`narrowing` with `ranges`), precision (`mixed_precision`),
dynamic dimensions (`static_shapes`). `legalization` has the whole, and refuses what no rewrite can
legalize.
"""
