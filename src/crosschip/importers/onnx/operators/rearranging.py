"""Operators that repeat, reverse or zero parts of a tensor."""

from __future__ import annotations

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.rearranging import ReverseSequence, Tile, Trilu


@imports("Tile")
def tile(node: Node) -> Operand:
    return node.add(Tile, node[0], node[1])


@imports("ReverseSequence")
def reverse_sequence(node: Node) -> Operand:
    time, batch = node.integer("time_axis"), node.integer("batch_axis")
    return node.add(ReverseSequence, node[0], node[1], time_axis=time, batch_axis=batch)


@imports("Trilu")
def trilu(node: Node) -> Operand:
    return node.add(Trilu, node[0], node.optional(1), node.flag("upper"))


@imports(f"{DOMAIN}.Trilu")
def contributed_trilu(node: Node) -> Operand:
    return node.add(Trilu, node[0], node.optional(1), node.flag("upper", True))
