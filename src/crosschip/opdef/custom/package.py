"""Packages: operators defined by OpDef documents, with their implementations."""

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
from crosschip.opdef.custom.inference import OutputRules, outputs_of
from crosschip.opdef.custom.native import NativeOperator
from crosschip.opdef.custom.operator import CustomOperator
from crosschip.opdef.custom.restrictions import restrictions_of
from crosschip.opdef.custom.rules import Rules
from crosschip.opdef.custom.slots import DefinedSlot, Stored, slots_of, stored_types
from crosschip.opdef.definitions import OpDef, OpDefCollection, Tensor
from crosschip.opdef.documents import read
from crosschip.opdef.mapping import node_lines
from crosschip.opdef.merging import merge_collections
from crosschip.ops import packages
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.operator import Operator

CustomT = TypeVar("CustomT", bound=type[CustomOperator])

_RESERVED = frozenset(dir(NativeOperator)).union(
    *(vars(base).get("__annotations__", ()) for base in NativeOperator.__mro__)
)
"""Attributes of operator classes, which cannot be names of slots."""

Convert = Callable[[Any, Any], Any]
"""A converter: adds an operation (second argument) to a device's graph (first argument)."""


class Package:
    """Package of operators that documents define and classes implement.

        filters = opdef.Package.read(Path(__file__).with_name("filters.xml"))

        @filters.defines("Blur")
        class Blur(opdef.CustomOperator):
            def reference(self, image):
                return uniform_filter(image, self.radius)

    To register the package wherever it is installed, name it in an entry point of the group
    `crosschip.opdefs`; to register it in this process, call `register`.

    Attributes:
        name: the name of the package.
        collection: the definitions.
        operators: the operators by type, which is domain and operator name, as in `example.Blur`.
    """

    def __init__(self, collection: OpDefCollection) -> None:
        self.collection = collection
        self.name = collection.package_name
        self._operators: dict[str, type[PackagedOperator]] = {}
        self.operators: Mapping[str, type[PackagedOperator]] = MappingProxyType(self._operators)

    @classmethod
    def read(cls, *paths: Path | str, strict: bool = False) -> Package:
        """Read a package from one document, or from several that belong together.

        Args:
            paths: the documents.
            strict: whether to refuse every violation of a rule; otherwise violations that occur in
                vendors' documents are logged as warnings.

        Raises:
            OpDefError: a document cannot be read or breaks a rule, or documents contradict each
                other.
            ImportError: xmlschema is not installed: `pip install "crosschip[opdef]"`.
        """
        documents = [read(path, strict=strict) for path in paths]
        if len(documents) == 1:
            return cls(documents[0].collection)
        (collection,) = merge_collections([document.collection for document in documents])
        return cls(collection)

    def defines(self, name: str) -> Callable[[CustomT], CustomT]:
        """Return a decorator that registers a class as the implementation of an operator.

        The decorator returns a subclass with the slots, rules and output types of the definition.

        Raises:
            InputError: the document has no such operator, another class implements it, or neither
                the definition nor the class determines the outputs.
        """
        op_def = self.collection.op_defs.get(name)
        if op_def is None:
            near = did_you_mean(name, self.collection.op_defs)
            raise InputError(f"{self.name}: there is no operator {name!r}{near}")

        def define(cls: CustomT) -> CustomT:
            operator = self._define(op_def, cls)
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
        """Return a decorator that registers a function as converter of operators on a device.

        The function has the form of the device's own converters: see
        `crosschip.hal.Converters.converts`. Converters of `onnxruntime` emit ONNX and also serve
        chips whose compilers read ONNX.

        Args:
            device: the name of the device.
            operators: the operators to convert.
            types: the permitted element types.
            computed: the parameters that need not be constant.
            limit: returns further unsupported cases.
            nonempty: whether tensors must have elements.
            quantized: the supported quantized forms.
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

        def register_and_note(function: Convert) -> Convert:
            for operator in operators:
                if issubclass(operator, CustomOperator):
                    operator.add_function(device, function)
            return register(function)

        return register_and_note

    def register(self) -> None:
        """Register the operators in this process; replace a package of the same name.

        Raises:
            InputError: another package has an operator of the same type.
        """
        packages.register(self)

    def unregister(self) -> None:
        """Remove the operators from this process."""
        packages.unregister(self.name)

    def _define(self, op_def: OpDef, cls: CustomT) -> CustomT:
        where = f"{self.name}.{op_def.name}"
        if not isinstance(cls, type) or not issubclass(cls, CustomOperator):
            raise InputError(f"{where}: {cls!r} is not a subclass of opdef.CustomOperator")
        tensors = slots_of(self.collection, op_def, _RESERVED)
        rules = list(rules_of(op_def))
        rules_of_outputs = outputs_of(
            op_def, [rule for _, _, rule in rules], self._output_types(op_def)
        )
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
            "sources": tuple(self._key_parts(op_def)),
        }
        operator = cast(CustomT, type(cls.__name__, (cls,), namespace))
        if not any(isinstance(slot, DefinedSlot) and not slot.optional for slot in operator.slots):
            raise InputError(f"{where}: no input must be there; make one Mandatory")
        return operator

    def _check(
        self, where: str, cls: type[CustomOperator], rules_of_outputs: Iterable[OutputRules]
    ) -> None:
        """Check that the class provides whatever its definition does not determine."""
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

    def _output_types(self, op_def: OpDef) -> dict[str, frozenset[Stored]]:
        return {o.name: stored_types(self.collection, op_def, o) for o in op_def.outputs}

    def _key_parts(self, op_def: OpDef) -> Iterable[bytes]:
        """Yield the definition and its supplements as parts of the cache key."""
        yield f"{self.name} {self.collection.version}".encode()
        yield node_lines("OpDef", op_def, "").encode(errors="surrogatepass")
        for supplement in self.collection.supplements:
            for supplemental in supplement.op_defs:
                if supplemental.name == op_def.name:
                    lines = node_lines(supplement.backend, supplemental, "")
                    yield lines.encode(errors="surrogatepass")


def _names(tensors: Iterable[Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


def _description(op_def: OpDef) -> str:
    parts = op_def.description.parts if op_def.description else ()
    return "\n\n".join(part.text.strip() for part in parts) or op_def.name
