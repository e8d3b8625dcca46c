"""Changes of element type."""

from __future__ import annotations

from crosschip.hal.onnx.converters.table import MOVABLE, converts
from crosschip.hal.onnx.graph import Graph
from crosschip.ops.standard import conversion


@converts(conversion.Cast, types=MOVABLE)
def cast(g: Graph, op: conversion.Cast) -> str:
    return g.cast(g[op.input], op.dtype.dtype)
