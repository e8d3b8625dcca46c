"""Asking devices which operations of a model they run, and as what.

A device is asked about the whole model. What it declines may decompose: then it is asked about the
parts, and runs them in place of the operation if it runs all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosschip.hal import YES, Capabilities, Offer, Options, Rule, Sizing, Support
from crosschip.ir import Builder, Dim, ElementType, Model, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dimension import Dimension
from crosschip.ir.types import ALL_TYPES
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign
from crosschip.runtime.guard import GuardedDevice

Ask = Callable[[Model], Offer]
"""A device's offer for a model, whatever device it is."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a device does about an operation.

    Attributes:
        support: the device's answer about the operation as it stands.
        simpler: the operations of its decomposition, if the device runs those in its place.
    """

    support: Support
    simpler: Sequence[Operation] = ()

    def __bool__(self) -> bool:
        """Whether the device runs the operation, in whatever way."""
        return self.support.supported or bool(self.simpler)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.simpler:
            types = ", ".join(part.type for part in self.simpler)
            return f"decomposed into {types}, since {self.support.reason}"
        return self.support.reason or "supported"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a device does about the operations of a model.

    Attributes:
        of: the verdicts, by the operation's name.
        groups: operations that it runs together or not at all, with the reason.
    """

    of: Mapping[str, Verdict]
    groups: Sequence[tuple[str, Sequence[Operation]]]


def asking(device: GuardedDevice, options: Options) -> Ask:
    """How to ask a device; what does not fit its capabilities is declined without it."""
    screen = _Screen(device.capabilities, options)
    if not screen.needed:
        return lambda model: device.query(model, options)

    def ask(model: Model) -> Offer:
        offer = device.query(model, options)
        pairs = zip(map(screen, model.operations), offer.answers, strict=True)
        answers = [answer if declined is None else declined for declined, answer in pairs]
        return Offer(answers, offer.groups)

    return ask


def verdicts(
    model: Model, ask: Ask, wanted: Collection[str], refusals: Mapping[str, Support]
) -> Verdicts:
    """What a device does about operations of a model.

    Args:
        model: the whole model.
        ask: the device.
        wanted: the names of the operations in question.
        refusals: what is known not to work although the device says yes, by operation name.
    """
    offer = ask(model)
    found: dict[str, Verdict] = {}
    yes = Verdict(YES)
    taken = {operation.name for operation in model.operations}
    for operation, answer in zip(model.operations, offer.answers, strict=True):
        spend()
        if operation.name in wanted:
            answer = refusals.get(operation.name, answer)
            if answer is YES:  # one verdict for most operations of a large model
                found[operation.name] = yes
            else:
                simpler = () if answer else _simpler(operation, answer, ask, taken)
                found[operation.name] = Verdict(answer, simpler)
    groups = []
    for group in offer.groups:
        members = [model.operations[index] for index in group.operations]
        whole = all(o.name in found and found[o.name].support for o in members)
        if whole:
            groups.append((group.why, members))
        for operation in () if whole else members:
            if operation.name in found and found[operation.name].support:
                found[operation.name] = Verdict(broken_group(operation, group.why))
    return Verdicts(found, groups)


def broken_group(operation: Operation, why: str) -> Support:
    """The answer about an operation whose group the device does not get as a whole."""
    told = f"only together with others that go elsewhere ({why})" if why else "only together"
    return Support.no(operation, "", told, Rule.GROUP)


def _simpler(
    operation: Operation, answer: Support, ask: Ask, taken: set[str]
) -> Sequence[Operation]:
    """The decomposition of an operation that a device declines, if it runs that."""
    if answer.rule is Rule.FAILURE or not isinstance(operation, Operator):
        return ()
    return _decomposed(operation, ask, taken) or ()


def _decomposed(operation: Operator, ask: Ask, taken: set[str]) -> Sequence[Operation] | None:
    """The operation as simpler ones that the device supports; `None` if there is no such way."""
    builder = Builder(prefix=f"{operation.name}.", taken=taken)
    results = operation.decomposition(builder)
    if results is None:
        return None
    simpler = _making(operation.outputs, results, builder)
    offer = ask(_model_of(operation, simpler))
    if offer.groups or any(answer.dialect for answer in offer.answers):
        return None
    parts: list[Operation] = []
    for part, answer in zip(simpler, offer.answers, strict=True):
        if answer:
            parts.append(part)
            continue
        smaller = _decomposed(part, ask, taken) if isinstance(part, Operator) else None
        if smaller is None:
            return None
        parts.extend(smaller)
    return parts


def _model_of(operation: Operation, parts: Sequence[Operation]) -> Model:
    """The parts of an operation as a model that reads and makes what the operation does."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    return Model(
        operation.name,
        {f"input{index}": operand for index, operand in enumerate(read)},
        parts,
        {f"output{index}": operand for index, operand in enumerate(operation.outputs)},
    )


def _making(
    outputs: Sequence[Operand], results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """The builder's operations, so that they make the outputs in place of the results."""
    made = {operand for operation in builder.operations for operand in operation.outputs}
    renamed: dict[Operand, Operand] = {}
    for output, result in zip(outputs, results, strict=True):
        if result not in made or result in renamed:
            result = builder.add(Assign, renamed.get(result, result))
        renamed[result] = output
    return [
        operation.with_inputs(
            tuple(None if o is None else renamed.get(o, o) for o in operation.inputs),
            tuple(renamed.get(o, o) for o in operation.outputs),
        )
        for operation in builder.operations
    ]


class _Screen:
    """Declines what a device cannot do whatever it answers, by its capabilities.

    Attributes:
        needed: whether anything can be declined at all.
    """

    def __init__(self, capabilities: Capabilities, options: Options) -> None:
        self._capabilities = capabilities
        self._bounded = options.sizes.bounded
        offered = capabilities.precisions
        self._option = ""
        if options.threads is not None and not capabilities.threads:
            self._option = "the number of threads cannot be set on this device"
        self._precision = ""
        if options.precision not in offered and not capabilities.pairs:
            words = " or ".join(sorted(precision.value for precision in offered)) or "integers"
            self._precision = f"computes in {words}, not in {options.precision.value}"
        self._sizes = capabilities.sizing is not Sizing.FREE or capabilities.max_rank is not None
        self._lacking = ALL_TYPES - capabilities.types
        self.needed = bool(self._option or self._precision or self._sizes or self._lacking)

    def __call__(self, operation: Operation) -> Support | None:
        """The answer no, or `None` if the capabilities allow the operation."""
        if self._option:
            return Support.no(operation, "", self._option, Rule.OPTION)
        for slot, operand in _tensors(operation):
            type_ = operand.type
            if self._precision and type_.element_type is ElementType.FLOAT32:
                return Support.no(operation, slot, self._precision, Rule.OPTION)
            if type_.element_type in self._lacking:
                detail = f"{type_.element_type} is not supported"
                return Support.no(operation, slot, detail, Rule.ELEMENT_TYPE)
            misfit = self._misfit(type_.shape) if self._sizes else ""
            if misfit:
                return Support.no(operation, slot, misfit, Rule.SHAPE)
        return None

    def _misfit(self, shape: Sequence[Dim] | None) -> str:
        capabilities = self._capabilities
        if shape is None:
            return "its number of axes must be known"
        if capabilities.max_rank is not None and len(shape) > capabilities.max_rank:
            return f"has {len(shape)} axes, more than {capabilities.max_rank}"
        open_sizes = [size for size in shape if isinstance(size, Dimension)]
        if not open_sizes or capabilities.sizing is Sizing.FREE:
            return ""
        if capabilities.sizing is Sizing.FIXED:
            return f"the size {open_sizes[0]} is open; fix it with shapes="
        loose = sorted(set().union(*(size.names for size in open_sizes)) - self._bounded)
        return f"the size {loose[0]} has no bounds; give them with ranges=" if loose else ""


def _tensors(operation: Operation) -> Iterator[tuple[str, Operand]]:
    """What an operation computes on and makes, with the slots; parameters are none of it."""
    if isinstance(operation, Operator):
        yield from ((slot.name, o) for slot, o in operation.filled() if not slot.parameter)
    else:
        yield from operation.named_inputs()
    yield from (("output", output) for output in operation.outputs)
