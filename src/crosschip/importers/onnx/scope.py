"""Importing the nodes of one graph, each by its way.

A node is imported by its function in `TABLE`; where that refuses it, or there is none, as the
function of other operators that ONNX defines it as; and where there is none of those either, it
stays as it is, an extension operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from crosschip.importers.body import Body, Captures, with_settled_state
from crosschip.importers.onnx.functions import (
    Key,
    allows,
    expanded_counts,
    key_of,
    model_body,
    standard_body,
)
from crosschip.importers.onnx.grouping import has_foreign, makes_no_tensor, units
from crosschip.importers.onnx.names import Names
from crosschip.importers.onnx.node import Node
from crosschip.importers.onnx.opaque import (
    CONTAINER,
    OpaqueSubgraph,
    free_names,
    type_text,
)
from crosschip.importers.onnx.opaque_types import TypeInference
from crosschip.importers.onnx.operators import TABLE
from crosschip.importers.onnx.ordering import in_order
from crosschip.importers.onnx.schemas import domain_of
from crosschip.importers.onnx.shared import (
    REFUSALS,
    Shared,
    at,
    located,
    name_of,
    opsets_of,
    origin_of,
    place,
)
from crosschip.importers.onnx.tensors import text, texts
from crosschip.importers.packaged import arguments_in_order
from crosschip.ir import (
    Builder,
    ElementTypeError,
    ModelError,
    Operand,
    Origin,
    TensorType,
    UnsupportedError,
)
from crosschip.ir.budget import require, spend
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.onnx_messages import (
    FunctionProto,
    GraphProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    make_attribute,
)
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.packages import operator_titled
from crosschip.ops.standard.layout import Unsqueeze

_MAX_DEPTH = 32


class Scope(Names):
    """One graph, or the body of a function, as its nodes are imported.

    Args:
        shared: what all graphs of the model have in common.
        opsets: the version of each operator set that the nodes are written in.
        builder: grows the model, or the body of control flow, that the operations go to.
        outer: the scope of the graph around it, if its names are visible here.
        prefix: what the names of operations start with.
        depth: how many bodies and graphs it is inside of.
        captures: takes note of what is read from `outer`, if this is a body of control flow.
    """

    def __init__(
        self,
        shared: Shared,
        opsets: Mapping[str, int],
        builder: Builder,
        outer: Scope | None = None,
        prefix: str = "",
        depth: int = 0,
        captures: Captures | None = None,
    ) -> None:
        super().__init__(shared, outer, captures)
        self._opsets = opsets
        self._builder = builder
        self._of_file: bool = depth == 0 if outer is None else outer._of_file
        self._prefix = prefix
        self._depth = depth
        self._current = ""
        # Nodes of a graph are looked at with all graphs in them: once is enough for those.
        self._may_make_others: bool = outer is None or outer._may_make_others

    def output(self, name: str) -> Operand:
        """The operand of a name, as an output of the model, which something must make."""
        operand = self.operand(name)
        tensor = self.strings(operand)
        if tensor is None:
            return operand
        node = NodeProto(
            op_type="Constant", output=[name], attribute=[make_attribute("value", tensor)]
        )
        (result,) = self._extension(
            node, next(self._shared.names(name, 0)), "strings are no numbers"
        )
        return cast(Operand, result)

    def run(self, nodes: Sequence[NodeProto], wanted: Iterable[str], where: str = "") -> None:
        """Add the operations of nodes.

        Args:
            nodes: all nodes of the graph.
            wanted: the names of the graph's outputs.
            where: the file that messages name.
        """
        shared, nodes = self._shared, in_order(nodes)
        self._may_make_others = self._may_make_others and makes_no_tensor(nodes)
        others = shared.containers or shared.functions_make_others or self._may_make_others
        if others or has_foreign(nodes, lambda node: shared.function(node) or is_packaged(node)):
            self._run_units(nodes, set(wanted), where)
            return
        for number, node in enumerate(nodes):
            try:
                self._import(number, node)
            except REFUSALS as error:
                raise at(f"{where}{place(number, node)}", error) from None

    def _run_units(self, nodes: Sequence[NodeProto], wanted: set[str], where: str) -> None:
        """The same where something else than tensors of known types may pass between nodes."""
        with located(f"{where}types of values"):
            containers, unknown = self._inner_values(nodes)
        for unit in units(nodes, containers | unknown):
            with located(f"{where}{place(unit[0], nodes[unit[0]])}"):
                if len(unit) == 1:
                    self._import(unit[0], nodes[unit[0]])
                else:
                    others = (node for i, node in enumerate(nodes) if i not in unit)
                    read = wanted.union(*(free_names([node]) for node in others))
                    inside = [nodes[index] for index in unit]
                    defined = {text(name) for node in inside for name in node.output}
                    reason = "what passes between its parts is no tensor"
                    if defined.isdisjoint(containers):
                        reason = "the type of what passes between its parts is not known"
                    self._import_together(unit[0], inside, read, reason)

    def _inner_values(self, nodes: Sequence[NodeProto]) -> tuple[set[str], set[str]]:
        """The values of the graph that are no tensors, and those whose types are not known."""
        types: dict[str, TypeProto] = {}
        for name in free_names(nodes):
            operand = self.optional(name)
            if operand is not None:
                types[name] = self.type_of(operand)
        inference = TypeInference(self._opsets, self._shared.functions.values())
        inference.extend(types, nodes, self._declared)
        containers = {name for name, t in types.items() if not t.HasField("tensor_type")}
        return containers, inference.unknown(nodes, types)

    def _import_together(
        self, number: int, nodes: Sequence[NodeProto], read: set[str], reason: str
    ) -> None:
        """Keep nodes that must stay together as one extension operation."""
        makes = [text(name) for node in nodes for name in node.output if name]
        outputs = [name for name in makes if name in read]
        names = self._shared.names(f"{self._prefix}{name_of(nodes[0])}", number)
        subgraph = self._opaque_subgraph(nodes, outputs)
        extension = subgraph.extension(next(names), reason)
        around = self._builder.origins
        if self._of_file:
            self._builder.origins = tuple(map(origin_of, nodes))
        self._builder.append(extension)
        self._builder.origins = around
        for name, operand in zip(outputs, extension.outputs, strict=True):
            self.define(name, operand)

    def require_functions(self, nodes: Sequence[NodeProto]) -> None:
        """Check that the budget has room for what functions become that the model's nodes call.

        It is spent as they are expanded, which would take long for what is refused in the end.

        Raises:
            BudgetError: it has not.
        """
        functions = self._shared.functions
        if not functions:
            return

        def callee(node: NodeProto) -> Key | None:
            key = key_of(node)
            return key if key in functions and not is_packaged(node) else None

        bodies = {key: function.node for key, function in functions.items()}
        counts = expanded_counts(bodies, callee, _MAX_DEPTH)
        require(operations=sum(counts[key] for key in map(callee, nodes) if key is not None))

    def note_training(self) -> None:
        """Remember that the node being imported computes as in training."""
        self._shared.in_training[self._current] = None

    def run_graph(self, graph: GraphProto, arguments: Sequence[Operand]) -> list[Operand]:
        """Add the operations of a graph that a node holds; returns its outputs."""
        self._shared.unrolling.add(len(graph.node))
        scope = self._inner(self._opsets, outer=self)
        return scope._graph(graph, arguments)

    def run_body(self, graph: GraphProto, types: Sequence[TensorType]) -> Body:
        """Import a graph that a node holds as a model of its own.

        Args:
            graph: which one.
            types: those of its inputs.

        Raises:
            UnsupportedError: something else than tensors passes through it.
        """
        takes_none = any(type_ == CONTAINER for type_ in types)
        others = self._may_make_others and makes_no_tensor(graph.node)
        if takes_none or self._shared.functions_make_others or others:
            raise UnsupportedError("hands on what is no tensor")
        captures = Captures()
        builder = Builder(text(graph.name), used_names=self._shared.operation_names)
        scope = self._inner(self._opsets, outer=self, builder=builder, captures=captures)
        names = [text(value.name) for value in graph.input]
        inputs = [Operand(name, type_) for name, type_ in zip(names, types, strict=False)]
        operands = [
            scope._shaped(operand, value)
            for operand, value in zip(inputs, graph.input, strict=False)
        ]
        if len(names) != len(types):
            raise ModelError(f"takes {len(names)} values, not {len(types)}")
        outputs = scope._graph(graph, operands)
        if any(output.type == CONTAINER for output in outputs):
            raise UnsupportedError("hands on what is no tensor")
        return Body(builder.name, inputs, builder.operations, outputs, captures)

    def state_body(
        self,
        graph: GraphProto,
        before: Sequence[TensorType],
        state: Sequence[TensorType],
        after: Sequence[TensorType],
        skipped: int,
    ) -> Body:
        """Like `run_body`, for a graph that is to take again what it makes of some of its inputs.

        Args:
            graph: which one.
            before: the types of what it takes before the state.
            state: the types of the first state.
            after: the types of what it takes after the state.
            skipped: how many values it makes before the next state.
        """
        current = self._current

        def import_body(types: Sequence[TensorType]) -> Body:
            self._current = current
            return self.run_body(graph, [*before, *types, *after])

        if len(graph.output) < skipped + len(state):
            raise ModelError(f"makes {len(graph.output)} values of {skipped + len(state)}")
        place = (len(before), skipped)
        return with_settled_state(import_body, state, place, self._shared.open_axes, current)

    def attempt(self, way: Callable[[], list[Operand]]) -> list[Operand] | None:
        """The results of a way to unroll a loop; `None`, with nothing added, if it has no end."""
        before = len(self._builder.operations)
        with self._shared.unrolling.attempt() as attempt:
            if attempt.allowed:
                return way()
        self._undo(before)
        return None

    def _graph(self, graph: GraphProto, arguments: Sequence[Operand]) -> list[Operand]:
        """Add the operations of a graph to this scope, which is made for it."""
        spend(operations=len(graph.node))
        if len(graph.input) != len(arguments):
            raise ModelError(f"takes {len(graph.input)} values, not {len(arguments)}")
        self.initialize(graph.initializer)
        for value, operand in zip(graph.input, arguments, strict=True):
            self.define(text(value.name), operand)
        outputs = [text(value.name) for value in graph.output]
        self.run(graph.node, outputs)
        if self._captures is None:
            return [self.operand(name) for name in outputs]
        return [self.output(name) for name in outputs]

    def _shaped(self, operand: Operand, value: ValueInfoProto) -> Operand:
        """The number or condition of a loop with the axis that its body may declare it to have."""
        of_loop = operand.type is ITERATION or operand.type is CONDITION
        if not of_loop or len(value.type.tensor_type.shape.dim) != 1:
            return operand
        return self._builder.add(Unsqueeze, operand, (0,))

    def _inner(
        self,
        opsets: Mapping[str, int],
        outer: Scope | None,
        builder: Builder | None = None,
        captures: Captures | None = None,
    ) -> Scope:
        if self._depth >= _MAX_DEPTH:
            raise UnsupportedError(f"its functions and graphs are nested over {_MAX_DEPTH} deep")
        prefix, depth = f"{self._current}/", self._depth + 1
        return Scope(self._shared, opsets, builder or self._builder, outer, prefix, depth, captures)

    def _undo(self, before: int) -> None:
        """Take back the operations from a number on, and what names have come to stand for."""
        gone = {o for operation in self._builder.operations[before:] for o in operation.outputs}
        del self._builder.operations[before:]
        self.forget(gone)

    def _import(self, number: int, proto: NodeProto) -> None:
        """Add the operations that a node stands for."""
        spend()
        outputs = texts(proto.output)
        if not outputs:
            raise ModelError("has no outputs")
        before = len(self._builder.operations)
        read = texts(proto.input)
        inputs = [self.optional(name) if name else None for name in read]
        self._current = own = f"{self._prefix}{name_of(proto)}"
        names = self._shared.names(own, number)
        node = Node(proto, self._opsets, inputs, outputs, self._builder, names, self)
        function = None if is_packaged(proto) else self._shared.function(proto)
        around = self._builder.origins
        if self._of_file:
            origin = Origin(node.full_name, tuple(filter(None, read)), tuple(filter(None, outputs)))
            self._builder.origins = (origin,)
        try:
            if function is not None:
                results = self._by_model_function(function, node)
            else:
                results = self._results(node)
        finally:
            self._builder.origins = around
        self._bind(node, results, before)

    def _results(self, node: Node) -> Sequence[Operand | None]:
        """The operands for a node's outputs, by the first of its ways that can be gone."""
        before = len(self._builder.operations)
        try:
            return self._by_function(node)
        except (UnsupportedError, ComputedParameter) as error:
            refusal: Exception = UnsupportedError(str(error))
        except ElementTypeError as error:
            written = [None if operand is None else type_text(operand) for operand in node.inputs]
            if not allows(node.proto, node.opset, written):
                raise
            refusal = UnsupportedError(str(error))
        self._undo(before)
        if not self._opaque_subgraph([node.proto], _output_names(node.proto)).is_sound():
            raise refusal
        types = [TypeProto() if o is None else self.type_of(o) for o in node.inputs]
        body = standard_body(node.proto, node.opset, types)
        if body is not None:
            try:
                return self._expand(body, node)
            except REFUSALS as error:
                self._undo(before)
                if node.full_name not in TABLE:
                    refusal = UnsupportedError(str(error))
        try:
            return self._extension(node.proto, next(node.names), str(refusal))
        except UnsupportedError:
            raise refusal from None

    def _by_function(self, node: Node) -> Sequence[Operand | None]:
        packaged = operator_titled(node.type, domain_of(node.proto))
        if packaged is not None:
            return self._by_package(packaged, node)
        if node.full_name not in TABLE:
            raise UnsupportedError("is not a standard operator")
        try:
            results = TABLE[node.full_name](node)
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            # A function computes with the model's numbers, which may be anything.
            raise ModelError(f"its numbers do not go together: {error}") from None
        node.finish()
        return [results] if isinstance(results, Operand) else results

    def _by_package(self, operator: type[PackagedOperator], node: Node) -> Sequence[Operand]:
        """By the operator of a package, whose results may be more than the node names."""
        arguments = arguments_in_order(operator, node.inputs, node.value)
        results = node.add_all(operator, **arguments)
        try:
            node.finish()
        except UnsupportedError as error:
            raise ModelError(f"{error}; {operator.type} has no such parameter") from None
        if len(node.outputs) > len(results):
            raise ModelError(
                f"names {len(node.outputs)} outputs, but {operator.type} has {len(results)}"
            )
        return results

    def _by_model_function(self, function: FunctionProto, node: Node) -> Sequence[Operand | None]:
        """By the function's body; what calls it from outside of all others may stay as it is."""
        before = len(self._builder.operations)
        try:
            return self._expand(model_body(function, node.proto), node)
        except UnsupportedError as error:
            if self._depth:
                raise
            self._undo(before)
            try:
                return self._extension(node.proto, next(node.names), str(error))
            except UnsupportedError:
                raise error from None

    def _expand(self, body: FunctionProto, node: Node) -> Sequence[Operand | None]:
        """Add the operations of a function's body; returns the outputs that the node names."""
        self._shared.unrolling.add(len(body.node))
        spend(operations=len(body.node))
        scope = self._inner({**self._opsets, **opsets_of(body.opset_import)}, outer=None)
        if len(node.inputs) > len(body.input):
            raise ModelError(f"takes {len(body.input)} inputs, not {len(node.inputs)}")
        for name, operand in itertools.zip_longest(map(text, body.input), node.inputs):
            scope.define(name, operand)
        scope.run(body.node, map(text, body.output))
        wanted = zip(body.output, node.outputs, strict=False)
        return [scope.optional(text(name)) if own else None for name, own in wanted]

    def _bind(self, node: Node, results: Sequence[Operand | None], before: int) -> None:
        """Give the results the names that the file has for them."""
        outputs = node.outputs
        named = dict(zip(results, outputs, strict=False))
        renamed = self._shared.rename(self._builder, named, before)
        for name, operand in itertools.zip_longest(outputs, results[: len(outputs)]):
            if not name:
                continue
            if name in self._operands or name in self._initializers:
                raise ModelError(f"makes {name!r}, which is there already")
            if operand is None:
                self._not_computed[name] = node.proto
            else:
                self._operands[name] = renamed.get(operand, operand)

    def _compute(self, name: str) -> None:
        """Make an output that the function of its node left out, by an extension operation."""
        proto = self._not_computed[name]
        names = self._shared.names(f"{self._prefix}{name}", 0)
        try:
            operands = self._extension(proto, next(names), f"its output {name!r} is needed")
        except UnsupportedError:
            raise UnsupportedError(f"{name!r} is an output that is not computed here") from None
        for output, operand in zip(proto.output, operands, strict=True):
            if operand is not None:
                self._shared.settled.add(operand)
                if text(output) in self._not_computed:
                    self._operands[text(output)] = operand
                    self._computed[text(output)] = self._not_computed.pop(text(output))

    def _extension(self, proto: NodeProto, name: str, reason: str) -> list[Operand | None]:
        """Keep a node as an extension operation; returns what it makes, `None` where it does not.

        Raises:
            UnsupportedError: it breaks a rule of ONNX, or it is not known what it makes.
        """
        extension = self._opaque_subgraph([proto], _output_names(proto)).extension(name, reason)
        self._builder.append(extension)
        results = iter(extension.outputs)
        return [next(results) if output else None for output in proto.output]

    def _opaque_subgraph(
        self, nodes: Sequence[NodeProto], outputs: Sequence[str]
    ) -> OpaqueSubgraph:
        shared = self._shared
        return OpaqueSubgraph(
            nodes,
            outputs,
            self,
            self._opsets,
            shared.ir_version,
            shared.functions.values(),
            self._declared,
        )


def is_packaged(node: NodeProto) -> bool:
    """Tell whether a package has a node's operator, or takes its place."""
    return operator_titled(text(node.op_type), domain_of(node)) is not None


def _output_names(proto: NodeProto) -> list[str]:
    """The names of what a node makes."""
    return [text(name) for name in proto.output if name]
