"""Import of the nodes of one graph.

For each node, the first method that succeeds counts: its function in `TABLE`; the function body
that ONNX defines for the operator; an extension operation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from crosschip.importers.body import Body, Captures, import_widened_body
from crosschip.importers.locations import REFUSALS, located, prefix_error
from crosschip.importers.onnx.functions import (
    Key,
    allows,
    expanded_counts,
    key_of,
    model_body,
    standard_body,
)
from crosschip.importers.onnx.grouping import has_foreign, in_order, makes_no_tensor, units
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
from crosschip.importers.onnx.schemas import domain_of
from crosschip.importers.onnx.shared import (
    Shared,
    describe_node,
    name_of,
    opsets_of,
    origin_of,
)
from crosschip.importers.onnx.tensors import text, texts
from crosschip.importers.packages import arguments_in_order
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
    """Graph or function body whose nodes are being imported.

    Args:
        shared: the state that all graphs of the model share.
        opsets: the opset version per domain.
        builder: receives the operations.
        outer: the scope of the enclosing graph, if its names are visible.
        prefix: the prefix of operation names.
        depth: the nesting depth.
        captures: records what is read from `outer`, in a body of control flow.
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
        # `makes_no_tensor` covers subgraphs: a negative answer holds for them, too.
        self._may_make_others: bool = outer is None or outer._may_make_others

    def output(self, name: str) -> Operand:
        """Return the operand of an output; string tensors become an extension operation."""
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

    def run(self, nodes: Sequence[NodeProto], outputs: Iterable[str], where: str = "") -> None:
        """Append the operations of nodes.

        Args:
            nodes: all nodes of the graph.
            outputs: the names of the graph's outputs.
            where: the file, for messages.
        """
        shared, nodes = self._shared, in_order(nodes)
        self._may_make_others = self._may_make_others and makes_no_tensor(nodes)
        has_others = shared.containers or shared.functions_make_others or self._may_make_others
        if has_others or has_foreign(
            nodes, lambda node: shared.function(node) or is_packaged(node)
        ):
            self._run_units(nodes, set(outputs), where)
            return
        for number, node in enumerate(nodes):
            try:
                self._import(number, node)
            except REFUSALS as error:
                raise prefix_error(f"{where}{describe_node(number, node)}", error) from None

    def _run_units(self, nodes: Sequence[NodeProto], outputs: set[str], where: str) -> None:
        """Append the operations of nodes, of which some must stay together."""
        with located(f"{where}types of values"):
            containers, unknown = self._inner_values(nodes)
        for unit in units(nodes, containers | unknown):
            with located(f"{where}{describe_node(unit[0], nodes[unit[0]])}"):
                if len(unit) == 1:
                    self._import(unit[0], nodes[unit[0]])
                else:
                    others = (node for i, node in enumerate(nodes) if i not in unit)
                    read = outputs.union(*(free_names([node]) for node in others))
                    inside = [nodes[index] for index in unit]
                    defined = {text(name) for node in inside for name in node.output}
                    reason = "what passes between its parts is no tensor"
                    if defined.isdisjoint(containers):
                        reason = "the type of what passes between its parts is not known"
                    self._import_together(unit[0], inside, read, reason)

    def _inner_values(self, nodes: Sequence[NodeProto]) -> tuple[set[str], set[str]]:
        """Return the names of values that are no tensors, and of those with unknown types."""
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
        """Append one extension operation for several nodes."""
        makes = [text(name) for node in nodes for name in node.output if name]
        outputs = [name for name in makes if name in read]
        names = self._shared.names(f"{self._prefix}{name_of(nodes[0])}", number)
        subgraph = self._opaque_subgraph(nodes, outputs)
        extension = subgraph.extension(next(names), reason)
        outer_origins = self._builder.origins
        if self._of_file:
            self._builder.origins = tuple(map(origin_of, nodes))
        self._builder.append(extension)
        self._builder.origins = outer_origins
        for name, operand in zip(outputs, extension.outputs, strict=True):
            self.define(name, operand)

    def require_functions(self, nodes: Sequence[NodeProto]) -> None:
        """Check that the budget suffices to expand the functions that the nodes call.

        The budget itself is spent during expansion; this check rejects a model before that.

        Raises:
            BudgetError: the budget does not suffice.
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
        """Record that the current node computes as in training."""
        self._shared.in_training[self._current] = None

    def run_graph(self, graph: GraphProto, arguments: Sequence[Operand]) -> list[Operand]:
        """Append the operations of a node's subgraph; return its outputs."""
        self._shared.unrolling.add(len(graph.node))
        scope = self._inner(self._opsets, outer=self)
        return scope._graph(graph, arguments)

    def run_body(self, graph: GraphProto, types: Sequence[TensorType]) -> Body:
        """Import a node's subgraph as a separate body.

        Args:
            graph: the subgraph.
            types: the types of its inputs.

        Raises:
            UnsupportedError: values other than tensors enter, leave or pass through the body.
        """
        takes_none = any(type_ == CONTAINER for type_ in types)
        has_others = self._may_make_others and makes_no_tensor(graph.node)
        if takes_none or self._shared.functions_make_others or has_others:
            raise UnsupportedError("passes a value that is no tensor into or out of a body")
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
            raise UnsupportedError("passes a value that is no tensor into or out of a body")
        return Body(builder.name, inputs, builder.operations, outputs, captures)

    def state_body(
        self,
        graph: GraphProto,
        before: Sequence[TensorType],
        state: Sequence[TensorType],
        after: Sequence[TensorType],
        skipped: int,
    ) -> Body:
        """Import a loop body with state types that fit all iterations; see `run_body`.

        Args:
            graph: the subgraph.
            before: the types of the inputs before the state.
            state: the types of the initial state.
            after: the types of the inputs after the state.
            skipped: the number of outputs before the next state.
        """
        current = self._current

        def import_body(types: Sequence[TensorType]) -> Body:
            self._current = current
            return self.run_body(graph, [*before, *types, *after])

        if len(graph.output) < skipped + len(state):
            raise ModelError(f"makes {len(graph.output)} values of {skipped + len(state)}")
        indices = (len(before), skipped)
        return import_widened_body(import_body, state, indices, self._shared.open_axes, current)

    def attempt(self, unroll: Callable[[], list[Operand]]) -> list[Operand] | None:
        """Return the result of `unroll`; `None`, with nothing added, if unrolling fails."""
        before = len(self._builder.operations)
        with self._shared.unrolling.attempt() as attempt:
            if attempt.allowed:
                return unroll()
        self._undo(before)
        return None

    def _graph(self, graph: GraphProto, arguments: Sequence[Operand]) -> list[Operand]:
        """Append the operations of a graph to this new scope and return its outputs."""
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
        """Reshape the iteration number or condition to [1] if the body declares that shape."""
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
        """Remove the operations from index `before` on, and unbind the names of their outputs."""
        removed = {o for operation in self._builder.operations[before:] for o in operation.outputs}
        del self._builder.operations[before:]
        self.forget(removed)

    def _import(self, number: int, proto: NodeProto) -> None:
        """Append the operations of one node and bind its outputs."""
        spend()
        outputs = texts(proto.output)
        if not outputs:
            raise ModelError("has no outputs")
        before = len(self._builder.operations)
        read = texts(proto.input)
        inputs = [self.optional(name) if name else None for name in read]
        self._current = f"{self._prefix}{name_of(proto)}"
        names = self._shared.names(self._current, number)
        node = Node(proto, self._opsets, inputs, outputs, self._builder, names, self)
        function = None if is_packaged(proto) else self._shared.function(proto)
        outer_origins = self._builder.origins
        if self._of_file:
            origin = Origin(node.full_name, tuple(filter(None, read)), tuple(filter(None, outputs)))
            self._builder.origins = (origin,)
        try:
            if function is not None:
                results = self._by_model_function(function, node)
            else:
                results = self._results(node)
        finally:
            self._builder.origins = outer_origins
        self._bind(node, results, before)

    def _results(self, node: Node) -> Sequence[Operand | None]:
        """Return a node's outputs by import function, function body or extension operation."""
        before = len(self._builder.operations)
        try:
            return self._by_function(node)
        except (UnsupportedError, ComputedParameter) as error:
            refusal: Exception = UnsupportedError(str(error))
        except ElementTypeError as error:
            type_texts = [
                None if operand is None else type_text(operand) for operand in node.inputs
            ]
            if not allows(node.proto, node.opset, type_texts):
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
        packages = operator_titled(node.type, domain_of(node.proto))
        if packages is not None:
            return self._by_package(packages, node)
        if node.full_name not in TABLE:
            raise UnsupportedError("is not a standard operator")
        try:
            results = TABLE[node.full_name](node)
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            # Import functions compute with the model's numbers without checking them.
            raise ModelError(f"its numbers do not go together: {error}") from None
        node.finish()
        return [results] if isinstance(results, Operand) else results

    def _by_package(self, operator: type[PackagedOperator], node: Node) -> Sequence[Operand]:
        """Import a node by a package's operator, which may have more outputs than the node."""
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
        """Expand a model's function; at the top level, fall back to an extension operation."""
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
        """Append the operations of a function body; return the outputs that the node names."""
        self._shared.unrolling.add(len(body.node))
        spend(operations=len(body.node))
        scope = self._inner({**self._opsets, **opsets_of(body.opset_import)}, outer=None)
        if len(node.inputs) > len(body.input):
            raise ModelError(f"takes {len(body.input)} inputs, not {len(node.inputs)}")
        for name, operand in itertools.zip_longest(map(text, body.input), node.inputs):
            scope.define(name, operand)
        scope.run(body.node, map(text, body.output))
        pairs = zip(body.output, node.outputs, strict=False)
        return [scope.optional(text(name)) if output else None for name, output in pairs]

    def _bind(self, node: Node, results: Sequence[Operand | None], before: int) -> None:
        """Bind the node's output names to the results."""
        outputs = node.outputs
        names = dict(zip(results, outputs, strict=False))
        renamed = self._shared.rename(self._builder, names, before)
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
        """Add an extension operation for an output that the node's import function omitted."""
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
        """Append a node as an extension operation; return its outputs, `None` for omitted ones.

        Raises:
            UnsupportedError: the node breaks a rule of ONNX, or an output type is unknown.
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
    """Return whether a package defines or overrides a node's operator."""
    return operator_titled(text(node.op_type), domain_of(node)) is not None


def _output_names(proto: NodeProto) -> list[str]:
    return [text(name) for name in proto.output if name]
