"""Changes of element type."""

from __future__ import annotations

from crosschip.devices.onnxruntime.converters.table import MOVABLE, converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ops.standard import conversion


@converts(conversion.Cast, types=MOVABLE)
def cast(g: Graph, op: conversion.Cast) -> str:
    return g.cast(g[op.input], op.dtype.dtype)
