"""Quirks: incorrect results of engines, each with a reproduction on the engine itself.

A device registers its quirks in a `Quirks` table. The documentation's table, the tests of the
workarounds and `scripts/quirks.py`, which checks the installed engine, are derived from the
records.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from enum import Enum
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from crosschip.hal import processor
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType, symbol
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator

_DEVICES = Path(__file__).parents[1]

ENGINES = sorted({path.parent.name for path in _DEVICES.glob("*/quirks*")} - {"kits"})
"""The devices with a module or package of quirks."""


@dataclass(frozen=True, slots=True)
class Raises:
    """The outcome of a reproduction that raises an exception.

    Attributes:
        text: a part of the message.
    """

    text: str = ""


@dataclass(frozen=True, slots=True)
class Dies:
    """The outcome of a reproduction that ends the process, with any signal or exit status."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The expected outcome of a reproduction with arbitrary wrong outputs."""


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """The outcome of a reproduction whose engine is not installed."""


Outcome: TypeAlias = Sequence[Array] | Raises | Dies | NotInstalled
Reproduction: TypeAlias = Callable[["Quirk"], Sequence[Array]]


class Verdict(Enum):
    """The state of a quirk in the installed engine."""

    PRESENT = "still there"
    GONE = "gone"
    DIFFERENT = "different"
    OTHER_PROCESSOR = "not on this processor"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """An incorrect result of an engine.

    Attributes:
        engine: the device that drives the engine.
        name: the identifier in code and documentation.
        operators: the affected standard operators.
        condition: when it occurs, as the end of a sentence that begins with "where".
        symptom: what the engine does, as the end of a sentence that begins with its name.
        versions: the engine versions with the quirk.
        fixed_in: the engine version without it; empty if there is none yet.
        since: the crosschip version that avoids it.
        avoided_by: the rewrites, converters and limits that avoid it.
        inputs: the inputs of the failing run.
        before: the inputs of runs that must precede that run in the same program.
        right: the outputs by the operators' definitions.
        wrong: the outputs of the engine.
        tolerance: the relative tolerance of comparisons with both.
        reproduce: runs the engine without the device, and returns the outputs.
        model: adds operations that hit the quirk to a builder, for a test of the workaround.
        open_sizes: whether all sizes of the inputs are dynamic.
        processor: the processor feature (as Linux names it) that it needs to occur.
        without: the processor features with any of which it does not occur.
        environment: the environment variables that it needs to occur.
        dies: whether it may end the process.
    """

    engine: str
    name: str
    operators: Sequence[str]
    condition: str
    symptom: str
    versions: str
    fixed_in: str = ""
    since: str
    avoided_by: Sequence[Callable[..., Any]]
    inputs: Sequence[Array]
    before: Sequence[Sequence[Array]] = ()
    right: Any
    wrong: Any
    tolerance: float = 1e-5
    reproduce: Reproduction
    model: Callable[..., Operand | tuple[Operand, ...]] | None = None
    open_sizes: bool = False
    processor: str = ""
    without: Collection[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    dies: bool = False

    def outcome(self) -> Outcome:
        """Return the outcome of the reproduction, run in a child process if it may end that."""
        return self._outcome_in_child() if self.dies or self.environment else self.outcome_here()

    def outcome_here(self) -> Outcome:
        """Return the outcome of the reproduction, run in this process."""
        try:
            return [np.asarray(output) for output in self.reproduce(self)]
        except ImportError:
            return NotInstalled()
        except (SyntaxError, TypeError, NameError):
            raise  # an error in the reproduction
        except Exception as error:  # engines raise any class
            return Raises(str(error))

    def _outcome_in_child(self) -> Outcome:
        with TemporaryDirectory() as folder:
            result = Path(folder) / "outcome.npz"
            program = f"from {__name__} import write_outcome; write_outcome(*{{}})"
            arguments = (self.engine, self.name, str(result))
            child = subprocess.run(
                [sys.executable, "-c", program.format(arguments)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **self.environment},
                capture_output=True,
            )
            if child.returncode:
                return Dies()
            with np.load(result, allow_pickle=False) as file:
                arrays = [file[name] for name in file.files]
        kind, text = arrays.pop(0).tolist()
        if kind == Raises.__name__:
            return Raises(text)
        return NotInstalled() if kind == NotInstalled.__name__ else arrays

    def verdict(self) -> Verdict:
        """Run the reproduction; return the state of the quirk."""
        outcome = self.outcome()
        if isinstance(outcome, NotInstalled):
            return Verdict.NOT_INSTALLED
        if self._matches(outcome, self.right):
            return Verdict.GONE if self.occurs_here else Verdict.OTHER_PROCESSOR
        return Verdict.PRESENT if self._matches(outcome, self.wrong) else Verdict.DIFFERENT

    @property
    def occurs_here(self) -> bool:
        """Whether this processor is one of those on which it occurs."""
        features = processor().split()
        has_feature = not self.processor or self.processor in features
        return has_feature and set(self.without).isdisjoint(features)

    def is_news(self, verdict: Verdict) -> bool:
        """Return whether a verdict contradicts the record."""
        return verdict is Verdict.DIFFERENT or (verdict is Verdict.GONE and not self.fixed_in)

    def is_right(self, outputs: Sequence[Array]) -> bool:
        """Return whether outputs are right by the operators' definitions."""
        return self._matches(outputs, self.right)

    def _matches(self, outcome: Outcome, expected: Any) -> bool:
        if isinstance(expected, Differs):
            return not isinstance(outcome, Raises | NotInstalled)
        if isinstance(expected, Raises):
            return isinstance(outcome, Raises) and expected.text in outcome.text
        if isinstance(expected, Dies) or isinstance(outcome, Raises | Dies | NotInstalled):
            return isinstance(expected, Dies) and isinstance(outcome, Dies)
        expected_outputs = expected if isinstance(expected, tuple) else (expected,)
        return len(outcome) >= len(expected_outputs) and all(
            _is_close(output, np.asarray(expected_output), self.tolerance)
            for output, expected_output in zip(outcome, expected_outputs, strict=False)
        )

    def build(self) -> Model:
        """Return a model that hits the quirk, with inputs x0, x1, … and outputs y0, y1, …."""
        assert self.model is not None, "checked by the caller"
        b = Builder(self.name)
        results = self.model(b, *(b.input(f"x{i}", t) for i, t in enumerate(self._types())))
        for i, result in enumerate(results if isinstance(results, tuple) else (results,)):
            b.output(f"y{i}", result)
        return b.build()

    def _types(self) -> Sequence[TensorType]:
        types = [TensorType(ElementType.of(a.dtype), a.shape) for a in self.inputs]
        if not self.open_sizes:
            return types
        return [
            TensorType(t.element_type, tuple(symbol(f"n{i}_{axis}") for axis in range(array.ndim)))
            for i, (t, array) in enumerate(zip(types, self.inputs, strict=True))
        ]


class Quirks:
    """The quirks of an engine, by name.

    Args:
        engine: the device that drives the engine.
        versions: the default of `Quirk.versions`.
        run: runs a reproduction function on the engine.
    """

    def __init__(
        self,
        engine: str,
        versions: str,
        run: Callable[[Callable[..., Any], Quirk], Sequence[Array]],
    ) -> None:
        self._engine = engine
        self._versions = versions
        self._run = run
        self.records: dict[str, Quirk] = {}

    def __call__(
        self,
        *operators: type[Operator],
        when: str,
        what: str,
        avoided_by: Callable[..., Any] | Sequence[Callable[..., Any]],
        inputs: Sequence[Any] = (),
        before: Sequence[Sequence[Any]] = (),
        versions: str = "",
        since: str = "0.3.0",
        **more: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: register a function as the reproduction of a quirk, named after the function.

        Lists among the inputs are converted to float32. See `Quirk` for the other arguments. Quirks
        that are fixed stay while crosschip supports engine versions with them.
        """

        def register(reproduction: Callable[..., Any]) -> Callable[..., Any]:
            name = reproduction.__name__.strip("_").replace("_", "-")
            self.records[name] = Quirk(
                engine=self._engine,
                name=name,
                operators=[operator.type for operator in operators],
                condition=when,
                symptom=what,
                versions=versions or self._versions,
                since=since,
                avoided_by=(avoided_by,) if callable(avoided_by) else tuple(avoided_by),
                inputs=[_array(each) for each in inputs],
                before=[[_array(each) for each in run] for run in before],
                reproduce=lambda quirk: self._run(reproduction, quirk),
                **more,
            )
            return reproduction

        return register


def quirks_of(engine: str) -> Mapping[str, Quirk]:
    """Return the quirks of an engine by name.

    Raises:
        ImportError: the engine is not installed.
    """
    table: Quirks = import_module(f"crosschip.devices.{engine}.quirks").quirk
    return table.records


def avoided_quirks(engine: str) -> Mapping[str, Sequence[str]]:
    """Return a sentence for each quirk of an engine, by the type of the affected operators.

    Raises:
        ImportError: the engine is not installed.
    """
    sentences: dict[str, list[str]] = {}
    for quirk in quirks_of(engine).values():
        text = f"{quirk.name}: where {quirk.condition}, {engine} {quirk.symptom} ({quirk.versions})"
        for operator in quirk.operators:
            sentences.setdefault(operator, []).append(text)
    return sentences


def write_outcome(engine: str, name: str, path: str) -> None:
    """Write the outcome of a reproduction in this process to a file."""
    outcome = quirks_of(engine)[name].outcome_here()
    text = outcome.text if isinstance(outcome, Raises) else ""
    arrays = outcome if isinstance(outcome, Sequence) else ()
    np.savez(path, np.array([type(outcome).__name__, text]), *arrays)


def _array(value: Any) -> Array:
    return value if isinstance(value, np.ndarray) else np.array(value, np.float32)


def _is_close(actual: Array, expected: Array, tolerance: float) -> bool:
    if actual.shape != expected.shape:
        return False
    if {actual.dtype.kind, expected.dtype.kind} <= set("biuOU"):
        return bool((actual == expected).all())
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    return bool(np.allclose(one, other, rtol=tolerance, atol=0, equal_nan=True))
