"""Packages of operators: definitions in an OpDef document, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from crosschip.hal.converters import Converters, Form, Limit
from crosschip.ir import ElementType, InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import ALL_TYPES
from crosschip.opdef.constraints import rules_of
from crosschip.opdef.custom.inference import Outputs, outputs_of
from crosschip.opdef.custom.native import NativeOperator
from crosschip.opdef.custom.operator import CustomOperator
from crosschip.opdef.custom.restrictions import restrictions_of
from crosschip.opdef.custom.rules import Rules
from crosschip.opdef.custom.slots import DefinedSlot, Stored, datatypes_of, slots_of
from crosschip.opdef.definitions import OpDef, OpDefCollection, Tensor
from crosschip.opdef.documents import read
from crosschip.opdef.mapping import node_lines
from crosschip.opdef.merging import merged
from crosschip.ops import packages
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.operator import Operator

CustomT = TypeVar("CustomT", bound=type[CustomOperator])

_TAKEN = frozenset(dir(NativeOperator)).union(
    *(vars(base).get("__annotations__", ()) for base in NativeOperator.__mro__)
)
"""What classes of operators have already, so that no slot can be called so."""

Convert = Callable[[Any, Any], Any]
"""A function of a device's graph and an operation, which adds the one to the other."""


class Package:
    """Operators that a document defines, each with a class that says what it computes.

        filters = opdef.Package.read(Path(__file__).with_name("filters.xml"))

        @filters.defines("Blur")
        class Blur(opdef.CustomOperator):
            def reference(self, image):
                return uniform_filter(image, self.radius)

    An entry point of the group `crosschip.opdefs` that names it makes its operators known wherever
    the package is installed; `register` makes them known to this process.

    Attributes:
        name: its name.
        collection: what its document says.
        operators: its operators, by type: the domain and the operator's name, as in `example.Blur`.
    """

    def __init__(self, collection: OpDefCollection) -> None:
        self.collection = collection
        self.name = collection.package_name
        self._operators: dict[str, type[PackagedOperator]] = {}
        self.operators: Mapping[str, type[PackagedOperator]] = MappingProxyType(self._operators)

    @classmethod
    def read(cls, *paths: Path | str, strict: bool = False) -> Package:
        """The package that a document defines, or several that belong together.

        Args:
            paths: the documents.
            strict: whether they may break no rule, those included that vendors' documents break.

        Raises:
            OpDefError: one cannot be read or breaks a rule, or they contradict each other.
            ImportError: xmlschema is not installed: `pip install "crosschip[opdef]"`.
        """
        documents = [read(path, strict=strict) for path in paths]
        if len(documents) == 1:
            return cls(documents[0].collection)
        (collection,) = merged([document.collection for document in documents])
        return cls(collection)

    def defines(self, name: str) -> Callable[[CustomT], CustomT]:
        """Decorator: a class computes the operator of a name.

        What it returns is the operator: the class, with the slots, rules and types of the outputs
        that the definition says.

        Raises:
            InputError: the document has no such operator, a class has it already, or neither the
                definition nor the class says what it needs to know.
        """
        op_def = self.collection.op_defs.get(name)
        if op_def is None:
            near = did_you_mean(name, self.collection.op_defs)
            raise InputError(f"{self.name}: there is no operator {name!r}{near}")

        def define(cls: CustomT) -> CustomT:
            operator = self._defined(op_def, cls)
            if operator.type in self._operators:
                raise InputError(f"{self.name}: two classes compute {name!r}")
            self._operators[operator.type] = operator
            packages.update(self)
            return operator

        return define

    def converts(
        self,
        device: str,
        *operators: type[Operator],
        types: Collection[ElementType] = ALL_TYPES,
        computed: Collection[str] = (),
        limit: Limit | None = None,
        nonempty: bool = False,
        quantized: Sequence[Form] = (),
    ) -> Callable[[Convert], Convert]:
        """Decorator: the function converts these operators on a device.

        It is one like those of the device itself: see `crosschip.hal.Converters.converts`. That of
        `onnxruntime` writes ONNX, also for chips whose compilers read it.

        Args:
            device: the device's name.
            operators: what it converts.
            types: the element types that tensors may have.
            computed: the parameters whose value need not be known at compile time.
            limit: what else cannot be done.
            nonempty: whether it needs tensors that have elements.
            quantized: the quantized forms that it has.
        """
        register = (
            Converters[Any, Any]
            .of_packages(device)
            .converts(
                *operators,
                types=types,
                computed=computed,
                limit=limit,
                nonempty=nonempty,
                quantized=quantized,
            )
        )

        def note(function: Convert) -> Convert:
            for operator in operators:
                if issubclass(operator, CustomOperator):
                    operator.has_function(device, function)
            return register(function)

        return note

    def register(self) -> None:
        """Make the operators known to this process; a package of the same name is replaced.

        Raises:
            InputError: another package has an operator of the same type.
        """
        packages.register(self)

    def unregister(self) -> None:
        """Forget the operators again."""
        packages.unregister(self.name)

    def _defined(self, op_def: OpDef, cls: CustomT) -> CustomT:
        where = f"{self.name}.{op_def.name}"
        if not isinstance(cls, type) or not issubclass(cls, CustomOperator):
            raise InputError(f"{where}: {cls!r} is not a subclass of opdef.CustomOperator")
        tensors = slots_of(self.collection, op_def, _TAKEN)
        rules = list(rules_of(op_def))
        rules_of_outputs = outputs_of(op_def, [rule for _, _, rule in rules], self._stored(op_def))
        self._check(where, cls, rules_of_outputs)
        namespace: dict[str, Any] = {slot.name: slot for slot in tensors.values()}
        namespace |= {
            "__slots__": (),
            "__module__": cls.__module__,
            "__doc__": cls.__doc__ or _description(op_def),
            "__qualname__": cls.__qualname__,
            "type": f"{self.collection.domain}.{op_def.name}",
            "package": self.name,
            "domain": self.collection.domain,
            "title": op_def.name,
            "overrides": op_def.use_default_translation,
            "tensors": {name: slot.name for name, slot in tensors.items()},
            "results": tuple(output.name for output in op_def.outputs),
            "repeats": op_def.outputs[-1].repeated,
            "definition": op_def,
            "rules": Rules(rules, _names(op_def.inputs), _names(op_def.outputs)),
            "output_rules": rules_of_outputs,
            "restrictions": restrictions_of(self.collection, op_def),
            "sources": tuple(self._written(op_def)),
        }
        operator = cast(CustomT, type(cls.__name__, (cls,), namespace))
        if not any(isinstance(slot, DefinedSlot) and not slot.optional for slot in operator.slots):
            raise InputError(f"{where}: no input must be there; make one Mandatory")
        return operator

    def _check(
        self, where: str, cls: type[CustomOperator], rules_of_outputs: Iterable[Outputs]
    ) -> None:
        """Refuse a class that leaves open what its definition leaves open."""
        if not cls.computes() and cls.decompose is Operator.decompose:
            raise InputError(f"{where}: {cls.__name__} defines neither reference nor decompose")
        outputs = list(rules_of_outputs)
        for output in outputs:
            if output.tensor.repeated and output is not outputs[-1]:
                name = output.tensor.name
                raise InputError(f"{where}.{name}: is repeated, and not the last output; move it")
            if cls.infer_shape is CustomOperator.infer_shape:
                output.check_shape(where)
            if cls.infer_element_type is CustomOperator.infer_element_type:
                output.check_type(where)
            if cls.output_count is CustomOperator.output_count:
                output.check_count(where)

    def _stored(self, op_def: OpDef) -> dict[str, frozenset[Stored]]:
        """The element types that each output may have."""
        return {
            output.name: frozenset(
                (datatype.element_type, datatype.quantized)
                for datatype in datatypes_of(self.collection, op_def, output)
                if datatype.element_type is not None
            )
            for output in op_def.outputs
        }

    def _written(self, op_def: OpDef) -> Iterable[bytes]:
        """The definition, and what backends say of it, as bytes for the cache key."""
        yield f"{self.name} {self.collection.version}".encode()
        yield node_lines("OpDef", op_def, "").encode(errors="surrogatepass")
        for supplement in self.collection.supplements:
            for own in supplement.op_defs:
                if own.name == op_def.name:
                    lines = node_lines(supplement.backend, own, "")
                    yield lines.encode(errors="surrogatepass")


def _names(tensors: Iterable[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def _description(op_def: OpDef) -> str:
    """The description of an operator as a docstring."""
    parts = op_def.description.parts if op_def.description else ()
    return "\n\n".join(part.text.strip() for part in parts) or op_def.name
