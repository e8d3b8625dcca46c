"""The device around a vendor's compiler."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from crosschip.devices.kits.onnx.converters import converters
from crosschip.devices.kits.onnx.standalone import Dialect, Written, on_reals, write
from crosschip.devices.kits.onnx.units import computes_float32, joined, units
from crosschip.devices.kits.toolchain.answers import Answers
from crosschip.devices.kits.toolchain.asking import Asking, part_of
from crosschip.devices.kits.toolchain.files import FileToolchain
from crosschip.devices.kits.toolchain.outputs import Outputs
from crosschip.devices.kits.worker import Died, Refused
from crosschip.hal.bisection import Bisection, Extent
from crosschip.hal.capabilities import Capabilities, Precision, Sizing
from crosschip.hal.converters import to_support
from crosschip.hal.device import CompileError
from crosschip.hal.options import Options
from crosschip.hal.program import Program
from crosschip.hal.support import YES, Group, Offer, Refusal, Rule, Support
from crosschip.ir import DeviceError, Model, Operation
from crosschip.ir.types import ALL_TYPES
from crosschip.onnx_messages import ModelProto
from crosschip.ops.standard.control import Assert

_TRIES = 24


class Toolchain(FileToolchain):
    """A device that hands whole segments to a vendor's compiler, as ONNX files.

    Segments have known sizes: the runtime fixes them. float32 operations are taken only where the
    caller asks for a precision that the chip has, and where they are one with the conversions
    around them: see `crosschip.devices.kits.onnx.units`.

    Attributes:
        dialect: the ONNX that it reads.
        checks: whether the script has `check`; if not, what the tool takes is learned by compiling.

    Raises:
        DeviceError: the tool is not there, or a property is unknown.
    """

    dialect: ClassVar[Dialect]
    checks: ClassVar[bool] = False

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        if self.properties.get("precision", "float16") != "float16":
            self.close()
            wrong = self.properties["precision"]
            raise DeviceError(f"property precision is {wrong!r}, but can only be float16")
        self._half = "precision" in self.properties

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            **super().known_properties(),
            "precision": "float16: compute float32 operations in float16 on this device, whatever "
            "the precision that other devices are asked for",
        }

    def capabilities(self) -> Capabilities:
        return Capabilities(
            precisions=frozenset({Precision.FLOAT16}),
            pairs=True,
            types=self.dialect.types & ALL_TYPES,
            sizing=Sizing.FIXED,
            max_rank=self.dialect.max_rank,
            concurrency=1,
            compile_names_unsupported=True,
            holds_weights=True,
        )

    @property
    def real_boundary(self) -> bool:
        return self.dialect.real_boundary

    def operators(self) -> Collection[str]:
        return converters.operators

    def settings(self, options: Options, *, quantized: bool) -> Mapping[str, Any]:
        """The tool's settings, as JSON can say them; the same for the same properties and options.

        Args:
            options: how to compile.
            quantized: whether a segment holds quantized operations.
        """
        return {}

    def limit(self, operation: Operation, options: Options) -> Refusal | None:
        """The rule of the device that an operation breaks, besides those of the dialect."""
        return None

    def amend(self, model: ModelProto) -> None:
        """Change a model to one that means the same, where the tool compiles what it is wrongly."""

    def query(self, model: Model, options: Options) -> Offer:
        options = self._own(options)
        own = [self._limited(operation, options) for operation in model.operations]
        index = {operation.name: place for place, operation in enumerate(model.operations)}
        answers = list(own)
        parts: list[tuple[Operation, ...]] = []
        inside: set[str] = set()
        for unit in units(model):
            if not all(own[index[member.name]] for member in unit.operations):
                continue
            refusal = self.limit(unit.whole, options)
            if refusal is None:
                parts.append(unit.operations)
                inside.update(member.name for member in unit.operations)
            else:
                core = index[unit.whole.name]
                answers[core] = own[core] = to_support(unit.whole, refusal)
        for operation, answer in zip(model.operations, own, strict=True):
            if answer and operation.name not in inside:
                unasked = self._unasked(operation, options)
                if unasked is None:
                    parts.append((operation,))
                else:
                    answers[index[operation.name]] = unasked
        accepted: list[tuple[Operation, ...]] = []
        for part, why in zip(parts, self._ask(model, parts, options), strict=True):
            if not why:
                accepted.append(part)
            else:
                for member in part:
                    no = Support.no(member, "", why, Rule.OPERATOR)
                    answers[index[member.name]] = no
        for part in accepted:  # a conversion may be in another part, too, that is not taken
            for member in part:
                answers[index[member.name]] = YES
        groups = [group for group in _groups(accepted, index) if len(group) < len(index)]
        why = "a quantized operation with the conversions around it"
        return Offer(answers, [Group(group, why) for group in groups])

    def compile(self, model: Model, options: Options) -> Program:
        options = self._own(options)
        self._check_precision(model, options)
        try:
            return self._compile(model, options)
        except Refused as error:
            named = self.named_in(model, self.complaint(error.output))
            if named:
                raise CompileError(self._reason(error), named) from error
            bisection: Bisection[tuple[Operation, ...], Refused] = Bisection(
                lambda some: self._refusal_of(model, some, options), lambda *_: (), _TRIES
            )
            alone = [
                operation
                for failure in bisection.search(_atoms(model), error)
                if failure.extent is Extent.ALONE
                for atom in failure.parts
                for operation in atom
            ]
            raise CompileError(self._reason(error), alone) from error

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return super().load(saved, model, self._own(options))

    @cached_property
    def _answers(self) -> Answers:
        facts = sorted(self._facts.items())
        known = sorted(self.compile_properties.values())
        words = [self._stem(), *(str(value) for _, value in facts), *known]
        # Another script may put another question by the same words.
        words.append(hashlib.sha256(self.script.read_bytes()).hexdigest()[:8])
        return Answers("-".join(words))

    def _own(self, options: Options) -> Options:
        """The options as they are for this device."""
        return replace(options, precision=Precision.FLOAT16) if self._half else options

    def _limited(self, operation: Operation, options: Options) -> Support:
        """The answer that converters and the device's own rules give."""
        if isinstance(operation, Assert):
            return Support.no(operation, "", "a chip does not stop in the middle", Rule.OPERATOR)
        answer = converters.supports(on_reals(operation))
        if not answer:
            return answer
        refusal = self.limit(operation, options)
        return YES if refusal is None else to_support(operation, refusal)

    def _unasked(self, operation: Operation, options: Options) -> Support | None:
        """The answer no to what would be computed in another precision than the caller's."""
        if options.precision is Precision.FLOAT16 or not computes_float32(operation):
            return None
        return Support.no(
            operation,
            "",
            "is float32, which the chip does not compute: quantize the model, or ask for float16 "
            f"(precision, or {self.name}'s property of that name)",
            Rule.OPTION,
        )

    def _check_precision(self, model: Model, options: Options) -> None:
        inside = {member.name for unit in units(model) for member in unit.operations}
        wrong = [
            operation
            for operation in model.operations
            if operation.name not in inside and self._unasked(operation, options) is not None
        ]
        if wrong:
            raise CompileError(
                "float32 operations without the conversions that make them quantized", wrong
            )

    def _ask(
        self, model: Model, parts: Sequence[Sequence[Operation]], options: Options
    ) -> Sequence[str]:
        """The reason why each part is refused, empty if it is not."""
        models = [part_of(model, part) for part in parts]
        return Asking(
            self.dialect,
            self._answers,
            lambda part: self._refusals(part, options),
        ).reasons(models)

    def _refusals(self, model: Model, options: Options) -> str:
        """The reason why the tool refuses a model, empty if it does not.

        It is kept, so of a process that died it says only what is the same every time.
        """
        with tempfile.TemporaryDirectory(prefix="crosschip-") as folder:
            self.write(Outputs(model).requested, Path(folder))
            settings = self._settings(model, options)
            function = "check" if self.checks else "compile"
            try:
                result = self._ask_tool(function, folder, settings)
            except Died as error:
                return error.fate
            except Refused as error:
                return self._reason(error)
        reasons = list(result.values()) if isinstance(result, dict) else []
        return str(reasons[0]) if reasons else ""

    def _refusal_of(
        self, model: Model, atoms: Sequence[Sequence[Operation]], options: Options
    ) -> Refused | None:
        """The tool's error about some operations of a model; `None` if it compiles them."""
        part = part_of(model, [operation for atom in atoms for operation in atom])
        try:
            self._compile(part, options).close()
        except Refused as error:
            return error
        return None

    def write(self, model: Model, folder: Path) -> None:
        write(model, self.dialect, self.amend).model.store(Path(folder, "model.onnx"))

    def named_in(self, model: Model, message: str) -> Collection[Operation]:
        return self._written(model).named_in(message)

    def _settings(self, model: Model, options: Options) -> Mapping[str, Any]:
        return self.settings(options, quantized=bool(units(model)))

    def _written(self, model: Model) -> Written:
        return write(Outputs(model).requested, self.dialect, self.amend)


def _atoms(model: Model) -> list[tuple[Operation, ...]]:
    """The operations of a model, those of quantized operations together, in order."""
    place = {operation.name: index for index, operation in enumerate(model.operations)}
    parts = [unit.operations for unit in units(model)]
    grouped = _groups(parts, place)
    inside = {index for group in grouped for index in group}
    grouped += [[index] for index in range(len(model.operations)) if index not in inside]
    return [tuple(model.operations[index] for index in group) for group in sorted(grouped)]


def _groups(parts: Sequence[Sequence[Operation]], index: Mapping[str, int]) -> list[list[int]]:
    """The places of operations that are in one part, or in parts that share some."""
    return joined([index[member.name] for member in part] for part in parts if len(part) > 1)
