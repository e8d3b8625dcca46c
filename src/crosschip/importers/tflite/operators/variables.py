"""Resource variables: state that a session passes from run to run."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import CallOnceOptions, VarHandleOptions
from crosschip.importers.tflite.node import Node, Resource, imports
from crosschip.importers.tflite.variable_uses import key_of
from crosschip.ir import Operand


@imports("VAR_HANDLE")
def var_handle(node: Node) -> Resource:
    return Resource(key_of(node.options(VarHandleOptions)))


@imports("READ_VARIABLE")
def read_variable(node: Node) -> Operand:
    return node.subgraph.variables.read(node.resource(0).key, node.output())


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
