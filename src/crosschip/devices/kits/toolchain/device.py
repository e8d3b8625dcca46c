"""The base class of devices whose compiler reads ONNX."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from crosschip.devices.kits.onnx.converters import converters
from crosschip.devices.kits.onnx.standalone import Dialect, fingerprint, on_reals, unwritable, write
from crosschip.devices.kits.onnx.units import computes_float32, merge_overlapping, submodel, units
from crosschip.devices.kits.toolchain.answers import Answers
from crosschip.devices.kits.toolchain.files import FileToolchain
from crosschip.devices.kits.toolchain.program import OutputMap
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

_MAX_TRIALS = 24


class Toolchain(FileToolchain):
    """A device that compiles whole segments with a vendor's compiler, as ONNX files.

    The runtime makes all sizes of segments static. float32 operations are accepted only if the
    caller requests a precision that the chip has, or if they and the conversions around them form a
    quantized operation: see `crosschip.devices.kits.onnx.units`.

    Attributes:
        dialect: the ONNX subset that the compiler supports.
        checks: whether the script has `check`; otherwise parts are checked by compiling them.

    Raises:
        DeviceError: the tool is not installed, or a property is unknown.
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
        """Return the tool's settings as JSON data; equal for equal properties and options.

        Args:
            options: the compile options.
            quantized: whether the segment has quantized operations.
        """
        return {}

    def limit(self, operation: Operation, options: Options) -> Refusal | None:
        """Return the rule of the device that an operation breaks, or `None`."""
        return None

    def amend(self, model: ModelProto) -> None:
        """Rewrite a model to an equivalent one, to avoid the tool's quirks."""

    def query(self, model: Model, options: Options) -> Offer:
        options = self._with_device_precision(options)
        limits = [self._check_rules(operation, options) for operation in model.operations]
        index = {operation.name: position for position, operation in enumerate(model.operations)}
        answers = list(limits)
        parts: list[tuple[Operation, ...]] = []
        inside: set[str] = set()
        for unit in units(model):
            if not all(limits[index[member.name]] for member in unit.operations):
                continue
            refusal = self.limit(unit.whole, options)
            if refusal is None:
                parts.append(unit.operations)
                inside.update(member.name for member in unit.operations)
            else:
                core = index[unit.whole.name]
                answers[core] = limits[core] = to_support(unit.whole, refusal)
        for operation, answer in zip(model.operations, limits, strict=True):
            if answer and operation.name not in inside:
                declined = self._check_float32(operation, options)
                if declined is None:
                    parts.append((operation,))
                else:
                    answers[index[operation.name]] = declined
        reasons = [self._refusal_reason(submodel(model, part), options) for part in parts]
        accepted: list[tuple[Operation, ...]] = []
        for part, reason in zip(parts, reasons, strict=True):
            if not reason:
                accepted.append(part)
            else:
                for member in part:
                    answers[index[member.name]] = Support.no(member, "", reason, Rule.OPERATOR)
        for part in accepted:  # a conversion may also be in a refused part
            for member in part:
                answers[index[member.name]] = YES
        groups = [group for group in _groups(accepted, index) if len(group) < len(index)]
        reason = "a quantized operation with the conversions around it"
        return Offer(answers, [Group(group, reason) for group in groups])

    def compile(self, model: Model, options: Options) -> Program:
        options = self._with_device_precision(options)
        self._check_precision(model, options)
        try:
            return self._compile(model, options)
        except Refused as error:
            named = self.named_in(model, self.complaint(error.output))
            if named:
                raise CompileError(self._reason(error), named) from error
            bisection: Bisection[tuple[Operation, ...], Refused] = Bisection(
                lambda some: self._refusal_of(model, some, options), lambda *_: (), _MAX_TRIALS
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
        return super().load(saved, model, self._with_device_precision(options))

    @cached_property
    def _answers(self) -> Answers:
        facts = sorted(self._facts.items())
        property_values = sorted(self.compile_properties.values())
        key = [self._stem(), *(str(value) for _, value in facts), *property_values]
        # Another version of the script may give other answers.
        key.append(hashlib.sha256(self.script.read_bytes()).hexdigest()[:8])
        return Answers("-".join(key))

    def _with_device_precision(self, options: Options) -> Options:
        """Return the options with this device's precision."""
        return replace(options, precision=Precision.FLOAT16) if self._half else options

    def _check_rules(self, operation: Operation, options: Options) -> Support:
        """Return the answer from the converters and the device's own rules."""
        if isinstance(operation, Assert):
            return Support.no(operation, "", "a chip does not stop in the middle", Rule.OPERATOR)
        answer = converters.supports(on_reals(operation))
        if not answer:
            return answer
        refusal = self.limit(operation, options)
        return YES if refusal is None else to_support(operation, refusal)

    def _check_float32(self, operation: Operation, options: Options) -> Support | None:
        """Return a refusal of float32 operations if the caller has not requested float16."""
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
            if operation.name not in inside and self._check_float32(operation, options) is not None
        ]
        if wrong:
            raise CompileError(
                "float32 operations without the conversions that make them quantized", wrong
            )

    def _refusal_reason(self, part: Model, options: Options) -> str:
        """Return why the compiler refuses a part of a model; empty if it accepts it."""
        reason = unwritable(part, self.dialect)
        if reason:
            return reason
        key = fingerprint(part, self.dialect)
        answer = self._answers.get(key)
        return self._answers.learn(key, self._try(part, options)) if answer is None else answer

    def _try(self, model: Model, options: Options) -> str:
        """Return why the tool refuses a model; empty if it accepts it.

        The reason is stored, so for a process that died it omits the output.
        """
        with tempfile.TemporaryDirectory(prefix="crosschip-") as folder:
            self.write(OutputMap(model).requested, Path(folder))
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
        """Return the tool's error about some operations of a model; `None` if it compiles them."""
        part = submodel(model, [operation for atom in atoms for operation in atom])
        try:
            self._compile(part, options).close()
        except Refused as error:
            return error
        return None

    def write(self, model: Model, folder: Path) -> None:
        write(model, self.dialect, self.amend).model.store(Path(folder, "model.onnx"))

    def named_in(self, model: Model, message: str) -> Collection[Operation]:
        written = write(OutputMap(model).requested, self.dialect, self.amend)
        return written.named_in(message)

    def _settings(self, model: Model, options: Options) -> Mapping[str, Any]:
        return self.settings(options, quantized=bool(units(model)))


def _atoms(model: Model) -> list[tuple[Operation, ...]]:
    """Return the operations of a model in order, grouped by quantized operation."""
    index_of = {operation.name: index for index, operation in enumerate(model.operations)}
    parts = [unit.operations for unit in units(model)]
    grouped = _groups(parts, index_of)
    inside = {index for group in grouped for index in group}
    grouped += [[index] for index in range(len(model.operations)) if index not in inside]
    return [tuple(model.operations[index] for index in group) for group in sorted(grouped)]


def _groups(parts: Sequence[Sequence[Operation]], index: Mapping[str, int]) -> list[list[int]]:
    """Return indices of operations by part, omitting single ones and merging overlapping parts."""
    return merge_overlapping(
        [index[member.name] for member in part] for part in parts if len(part) > 1
    )
