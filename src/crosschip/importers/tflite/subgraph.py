"""Import of the operators of one subgraph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite import (
    BlockwiseQuantization,
    Model,
    Operator,
    OperatorCode,
    SubGraph,
    Tensor,
)
from crosschip.flatbuffer.schemas.tflite.enumerations import BuiltinOperator
from crosschip.importers.body import Body, Captures, OpenAxes
from crosschip.importers.locations import REFUSALS, located, prefix_error
from crosschip.importers.tflite.node import (
    ON_STORED_INTEGERS,
    TABLE,
    TAKES_COMPLEX,
    Node,
    Resource,
    Result,
)
from crosschip.importers.tflite.state import Variables
from crosschip.importers.tflite.tensors import (
    TensorReader,
    blocks_of,
    declared_type,
    is_complex,
    is_resource,
)
from crosschip.importers.tflite.variable_uses import (
    MAX_DEPTH,
    VariableUses,
    add_uses,
    indices,
    tensor_name,
)
from crosschip.ir import (
    Array,
    Builder,
    ModelError,
    ModelFileError,
    Operand,
    Origin,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ir.budget import spend
from crosschip.ir.loops import CONDITION, ITERATION

CUSTOM = "custom."
"""The prefix of custom operators' keys in the table of import functions."""

Value = Operand | Resource
Argument = TensorType | Resource
"""What a body takes: a tensor of a type, or a variable, which its callers pass."""


class Shared:
    """State that all subgraphs of one model share.

    Attributes:
        model: the root of the file.
        reader: reads constants.
        codes: the type and the version of each operator code of the file.
        operation_names: the names of operations, which are unique.
        operand_names: the names of results.
        open_axes: the dynamic axes of loop states.
    """

    def __init__(self, model: Model, reader: TensorReader, operation_names: set[str]) -> None:
        self.model = model
        self.reader = reader
        self.codes = [_operator_type(code) for code in model.operator_codes]
        self.operation_names = operation_names
        self.operand_names: set[str] = set()
        self.open_axes: OpenAxes = {}
        self._counts: dict[str, int] = {}

    def subgraph(self, index: int) -> SubGraph:
        """Return a subgraph of the file.

        Raises:
            ModelFileError: there is none of this index.
        """
        if not 0 <= index < len(self.model.subgraphs):
            raise ModelFileError(
                f"there is no subgraph {index}, but {len(self.model.subgraphs)} in all"
            )
        return self.model.subgraphs[index]

    def tensor(self, subgraph: int, index: int) -> Tensor:
        """Return a tensor of a subgraph.

        Raises:
            ModelFileError: there is none of this index.
        """
        tensors: Sequence[Tensor] = self.subgraph(subgraph).tensors
        if not 0 <= index < len(tensors):
            raise ModelFileError(f"there is no tensor {index}, but {len(tensors)} in all")
        return tensors[index]

    def code(self, operator: Operator) -> tuple[str, int]:
        """Return an operator's type and version."""
        if operator.opcode_index >= len(self.codes):
            raise ModelFileError(f"there is no operator code {operator.opcode_index}")
        index: int = operator.opcode_index
        return self.codes[index]

    def names(self, stem: str) -> Iterator[str]:
        """Yield names for the operations of an operator, the first being the stem if it is free."""
        if stem not in self.operation_names:
            yield stem
        for count in itertools.count(self._counts.get(stem, 0) + 1):
            name = f"{stem}.{count}"
            self._counts[stem] = count
            if name not in self.operation_names:
                yield name

    def operand_name(self, stem: str) -> str:
        """Return a name for a result, which no other has."""
        name, count = stem, 1
        while name in self.operand_names:
            count += 1
            name = f"{stem}#{count}"
        self.operand_names.add(name)
        return name


def _operator_type(code: OperatorCode) -> tuple[str, int]:
    """Return the type and the version of an operator code."""
    # Files of before 2020 have only the older field, of 8 bits.
    builtin, version = max(code.builtin_code, code.deprecated_builtin_code), int(code.version)
    if builtin == BuiltinOperator.CUSTOM:
        return f"{CUSTOM}{code.custom_code or ''}", version
    try:
        return BuiltinOperator(builtin).name, version
    except ValueError:
        return f"number {builtin}", version


class Subgraph:
    """Subgraph whose operators are being imported.

    Args:
        shared: the state that all subgraphs of the model share.
        index: the subgraph's index in the file.
        builder: receives the operations.
        variables: the variables.
        prefix: the prefix of operations' names.
        depth: the nesting depth.
    """

    def __init__(
        self,
        shared: Shared,
        index: int,
        builder: Builder,
        variables: Variables,
        prefix: str = "",
        depth: int = 0,
    ) -> None:
        if depth >= MAX_DEPTH:
            raise UnsupportedError(f"its subgraphs are nested over {MAX_DEPTH} deep")
        self.shared = shared
        self.index = index
        self.table = shared.subgraph(index)
        self._builder = builder
        self.variables = variables
        self._prefix = prefix
        self._depth = depth
        self._tensors: Sequence[Tensor] = self.table.tensors
        self._results: dict[int, Operand | Resource] = {}
        self._is_initializing = False

    @property
    def inputs(self) -> list[int]:
        """Return the indices of the input tensors."""
        return indices(self.table.inputs)

    @property
    def outputs(self) -> list[int]:
        """Return the indices of the output tensors."""
        return indices(self.table.outputs)

    def run(self, arguments: Sequence[Value], where: str = "") -> list[Value]:
        """Append the operations of the operators; return the outputs.

        Args:
            arguments: the operands and handles for the inputs.
            where: the file, for messages.
        """
        operators = self.table.operators
        spend(operations=len(operators))
        if len(self.inputs) != len(arguments):
            raise ModelError(f"takes {len(self.inputs)} values, not {len(arguments)}")
        self._results.update(zip(self.inputs, arguments, strict=True))
        for number, operator in enumerate(operators):
            try:
                self._import(operator)
            except REFUSALS as error:
                raise prefix_error(f"{where}{self._describe(number, operator)}", error) from None
        with located(f"{where}outputs"):
            return [self._value(index) for index in self.outputs]

    def tensor(self, index: int) -> Tensor:
        """Return a tensor of the file.

        Raises:
            ModelFileError: there is none of this index.
        """
        return self.shared.tensor(self.index, index)

    def is_complex(self, index: int) -> bool:
        """Return whether a tensor has complex numbers."""
        return is_complex(self.tensor(index))

    def name(self, index: int) -> str:
        """Return the name of a tensor."""
        return tensor_name(self.tensor(index), index)

    def operand(self, index: int) -> Operand:
        """Return the operand of a tensor.

        Raises:
            ModelError: the tensor is a handle, or has no value yet.
        """
        value = self._value(index)
        if not isinstance(value, Operand):
            raise ModelError(f"tensor {self.name(index)!r} is a handle, not a tensor")
        return value

    def array(self, index: int) -> Array:
        """Return the elements of a constant tensor.

        Raises:
            UnsupportedError: it is computed when the model runs.
        """
        operand = self.operand(index)
        if operand.value is None:
            raise UnsupportedError(f"tensor {operand.name!r} is computed when the model runs")
        return operand.value

    def blocks(self, index: int) -> BlockwiseQuantization | None:
        """Return the quantization of a tensor with a scale per block; `None` for another one."""
        return blocks_of(self.tensor(index))

    def operator_types(self, index: int) -> list[str]:
        """Return the types of the operators of another subgraph."""
        operators = self.shared.subgraph(index).operators
        return [self.shared.code(operator)[0] for operator in operators]

    def run_subgraph(self, index: int, arguments: Sequence[Value], name: str) -> list[Value]:
        """Append the operations of another subgraph; return its outputs."""
        inner = Subgraph(
            self.shared, index, self._builder, self.variables, f"{name}/", self._depth + 1
        )
        inner._is_initializing = self._is_initializing
        return inner.run(arguments)

    def uses(self, called: Iterable[int], arguments: Sequence[Value]) -> VariableUses:
        """Return the variables that subgraphs use, which are called with some arguments."""
        result = VariableUses()
        for index in called:
            inputs = zip(indices(self.shared.subgraph(index).inputs), arguments, strict=False)
            handles = {tensor: value.key for tensor, value in inputs if isinstance(value, Resource)}
            add_uses(result, self.shared, index, handles, self._depth + 1)
        return result

    def initialize(self, index: int, name: str) -> None:
        """Append the operations of a subgraph that runs once, before the first run."""
        was_initializing, self._is_initializing = self._is_initializing, True
        try:
            self.run_subgraph(index, (), name)
        finally:
            self._is_initializing = was_initializing

    def run_body(
        self,
        index: int,
        arguments: Sequence[Argument],
        variables: Mapping[str, TensorType],
        name: str,
    ) -> Body:
        """Import another subgraph as a separate body, which takes and returns variables, too.

        Args:
            index: the subgraph.
            arguments: the types of its inputs; handles of variables are no inputs of the body.
            variables: the types of the variables, which are the body's last inputs and outputs.
            name: the name of the body.
        """
        inner, inputs, values = self._body(index, arguments, variables, name)
        outputs = [each for each in inner.run(values) if isinstance(each, Operand)]
        outputs += [inner.variables.present[key] for key in variables]
        return Body(name, inputs, inner._builder.operations, outputs, Captures())

    def run_loop_body(
        self,
        called: tuple[int, int],
        arguments: Sequence[Argument],
        variables: Mapping[str, TensorType],
        name: str,
    ) -> Body:
        """Import the body of a loop, which ends with the condition for the next iteration.

        Args:
            called: the subgraph that maps a state to the condition, and the one that maps it to the
                next state.
            arguments: the types of the state; handles of variables are no inputs of the body.
            variables: the types of the variables, which follow the state.
            name: the name of the body.
        """
        condition_index, index = called
        inner, inputs, values = self._body(index, arguments, variables, name)
        results = inner.run(values)
        (condition,) = inner.run_subgraph(condition_index, results, f"{name}/condition")
        outputs = [each for each in (condition, *results) if isinstance(each, Operand)]
        outputs += [inner.variables.present[key] for key in variables]
        numbers = [Operand("iteration", ITERATION), Operand("condition", CONDITION)]
        return Body(name, [*numbers, *inputs], inner._builder.operations, outputs, Captures())

    def _body(
        self,
        index: int,
        arguments: Sequence[Argument],
        variables: Mapping[str, TensorType],
        name: str,
    ) -> tuple[Subgraph, list[Operand], list[Value]]:
        """Return a subgraph with a builder for itself, the body's inputs, and the subgraph's."""
        builder = Builder(name, used_names=self.shared.operation_names)
        passed = {key: Operand(key, type_) for key, type_ in variables.items()}
        values = Variables(builder, passed)
        inner = Subgraph(self.shared, index, builder, values, f"{name}/", self._depth + 1)
        if len(inner.inputs) != len(arguments):
            raise ModelError(f"takes {len(inner.inputs)} values, not {len(arguments)}")
        inputs: list[Value] = [
            each if isinstance(each, Resource) else Operand(inner.name(tensor), each)
            for tensor, each in zip(inner.inputs, arguments, strict=True)
        ]
        operands = [each for each in inputs if isinstance(each, Operand)]
        return inner, [*operands, *passed.values()], inputs

    def assign_variable(self, resource: Resource, value: Operand) -> None:
        """Assign a value to a variable, or set its initial value in a subgraph that runs once."""
        if self._is_initializing:
            self.variables.initialize(resource.key, value)
        else:
            self.variables.assign(resource.key, value)

    def update(self, index: int, value: Operand, node: Node) -> None:
        """Assign a value to a tensor that keeps it until the next run."""
        tensor = self.tensor(index)
        if not tensor.is_variable:
            raise ModelError(f"tensor {self.name(index)!r} keeps state, but is no variable")
        fitted = node.fit(value, declared_type(tensor))
        self._results[index] = fitted
        self.variables.assign(self.name(index), fitted)

    def _value(self, index: int) -> Operand | Resource:
        """Return the value of a tensor; constants are read when they are first used."""
        if index not in self._results:
            tensor, name = self.tensor(index), self.name(index)
            if self.shared.reader.is_constant(tensor):
                self._results[index] = self.shared.reader.constant(tensor, name)
            elif tensor.is_variable:
                return self.variables.read(name, declared_type(tensor))
            elif 0 in (shape := declared_type(tensor).static_shape or ()):
                type_ = declared_type(tensor)
                empty = np.zeros(shape, type_.element_type.dtype)
                self._results[index] = constant(empty, name, type_.quantization)
            else:
                raise ModelError(f"tensor {name!r} has no value")
        return self._results[index]

    def _describe(self, number: int, operator: Operator) -> str:
        """Return a description of an operator for messages."""
        outputs = indices(operator.outputs)
        known = bool(outputs) and 0 <= outputs[0] < len(self._tensors)
        name = f" {self.name(outputs[0])!r}" if known else ""
        type_ = ""
        if operator.opcode_index < len(self.shared.codes):
            type_ = self.shared.codes[operator.opcode_index][0]
        return f"operator {number} ({type_.removeprefix(CUSTOM)}{name})"

    def _import(self, operator: Operator) -> None:
        """Append the operations of one operator and bind its outputs."""
        spend()
        type_, version = self.shared.code(operator)
        if type_ not in TABLE:
            raise UnsupportedError("no importer for this operator")
        inputs, outputs = indices(operator.inputs), indices(operator.outputs)
        if type_ not in TAKES_COMPLEX and any(self.is_complex(i) for i in inputs if i >= 0):
            raise UnsupportedError("of complex numbers, it has no importer")
        stem = f"{self._prefix}{self.name(outputs[0]) if outputs else type_}"
        node = Node(
            type_=type_,
            version=version,
            options=operator.builtin_options or operator.builtin_options2,
            custom_options=_bytes(operator.custom_options),
            inputs=[None if index < 0 else self._value(index) for index in inputs],
            input_indices=inputs,
            outputs=[self._declared(index) for index in outputs],
            output_indices=outputs,
            intermediates=[
                declared_type(self.tensor(index)) for index in indices(operator.intermediates)
            ],
            builder=self._builder,
            names=self.shared.names(stem),
            subgraph=self,
        )
        before = len(self._builder.operations)
        if type_ in ON_STORED_INTEGERS:
            node.inputs = [
                node.integers(each) if isinstance(each, Operand) else each for each in node.inputs
            ]
        outer_origins = self._builder.origins
        if not outer_origins or not self._depth:
            names = ([self.name(i) for i in indices if i >= 0] for indices in (inputs, outputs))
            read, written = map(tuple, names)
            self._builder.origins = (Origin(type_.removeprefix(CUSTOM), read, written),)
        try:
            results = self._results_of(node)
        finally:
            self._builder.origins = outer_origins
        renamed = self._bind(outputs, results, before)
        self._rename_variables(inputs, renamed)

    def _declared(self, index: int) -> TensorType | None:
        """Return the type that the file declares for an output; `None` for a handle."""
        tensor = self.tensor(index)
        return None if is_resource(tensor) else declared_type(tensor)

    def _results_of(self, node: Node) -> list[Result]:
        """Return the outputs of an operator, with the types that the file declares."""
        try:
            results = TABLE[node.type](node)
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            # Import functions compute with the model's numbers without checking them.
            raise ModelError(f"its numbers do not go together: {error}") from None
        if isinstance(results, Operand | Resource) or results is None:
            results = [results]
        return [
            node.fit(result, type_) if isinstance(result, Operand) and type_ else result
            for result, type_ in zip(results, node.outputs, strict=False)
        ]

    def _rename_variables(self, indices: Sequence[int], renamed: Mapping[Operand, Operand]) -> None:
        """Replace renamed results that an operator has assigned to its variables."""
        for index in indices:
            value = self._results.get(index)
            if isinstance(value, Operand) and value in renamed:
                self._results[index] = renamed[value]
        if renamed:
            self.variables.rename(renamed)

    def _bind(
        self, outputs: Sequence[int], results: Sequence[Result], before: int
    ) -> Mapping[Operand, Operand]:
        """Bind tensors to the results; return the new operands of those that get their names."""
        operations = self._builder.operations[before:]
        computed = {operand for operation in operations for operand in operation.outputs}
        names = {
            result: self.shared.operand_name(f"{self._prefix}{self.name(index)}")
            for index, result in zip(outputs, results, strict=False)
            if isinstance(result, Operand) and result in computed
        }
        wanted = set(names.values())
        for operation in operations:
            for operand in operation.outputs:
                if operand not in names and operand.name in wanted:
                    names[operand] = f"{operation.name}.{operation.type.lower()}"
        changed = {operand: name for operand, name in names.items() if operand.name != name}
        renamed: Mapping[Operand, Operand] = {}
        if changed:
            renamed = self._builder.rename(changed, before)
        for index, result in zip(outputs, results, strict=False):
            if isinstance(result, Operand):
                self._results[index] = renamed.get(result, result)
            elif result is not None:
                self._results[index] = result
        return renamed


def _bytes(vector: Array | None) -> bytes:
    return b"" if vector is None else vector.tobytes()
