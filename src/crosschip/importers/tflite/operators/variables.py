"""Resource variables: state that a session passes from run to run."""

from __future__ import annotations

from crosschip.flatbuffer import Table
from crosschip.flatbuffer.schemas.tflite.options import CallOnceOptions, VarHandleOptions
from crosschip.importers.tflite.node import Node, Resource, imports
from crosschip.ir import Operand


def key_of(options: Table | None) -> str:
    """Return what identifies the variable of VAR_HANDLE's options."""
    if not isinstance(options, VarHandleOptions):
        return "/"
    return f"{options.container or ''}/{options.shared_name or ''}"


@imports("VAR_HANDLE")
def var_handle(node: Node) -> Resource:
    return Resource(key_of(node.options(VarHandleOptions)))


@imports("READ_VARIABLE")
def read_variable(node: Node) -> Operand:
    return node.subgraph.read_variable(node.resource(0), node.output())


@imports("ASSIGN_VARIABLE")
def assign_variable(node: Node) -> list[Operand]:
    node.subgraph.assign_variable(node.resource(0), node[1])
    return []


@imports("CALL_ONCE")
def call_once(node: Node) -> list[Operand]:
    """Import a subgraph that sets the values with which variables begin."""
    index = node.options(CallOnceOptions).init_subgraph_index
    node.subgraph.initialize(index, next(node.names))
    return []
