"""Quirks: what an engine computes wrong, each with a reproduction on the engine itself.

A device registers its quirks in a `Quirks` table, by the function that gives the reproduction to
the engine. The table of the documentation, the tests of the workarounds and `scripts/quirks.py`,
which tells whether the installed engine still has them, are derived from the records.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
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

ENGINES = ("openvino", "onnxruntime", "xla", "qualcomm", "rockchip")


@dataclass(frozen=True, slots=True)
class Raises:
    """The outcome of a reproduction that ends in an exception.

    Attributes:
        text: words of its message.
    """

    text: str = ""


@dataclass(frozen=True, slots=True)
class Dies:
    """The outcome of a reproduction that ends the process, by whatever signal or status."""


@dataclass(frozen=True, slots=True)
class Differs:
    """The outcome of a reproduction that is arbitrary, and not the right one."""


@dataclass(frozen=True, slots=True)
class NotInstalled:
    """The outcome of a reproduction whose engine is not installed."""


Outcome: TypeAlias = Sequence[Array] | Raises | Dies | NotInstalled
Reproduction: TypeAlias = Callable[["Quirk"], Sequence[Array]]


class Verdict(Enum):
    """What has become of a quirk in the engine that is installed."""

    PRESENT = "still there"
    GONE = "gone"
    DIFFERENT = "different"
    ELSEWHERE = "not on this processor"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """One thing that an engine computes wrong.

    Attributes:
        engine: the device that drives the engine.
        name: the words by which code and documentation refer to it.
        operators: the standard operators that it concerns.
        condition: when it happens; the end of a sentence that begins with "where".
        symptom: what the engine then does; the end of a sentence that begins with its name.
        versions: the versions of the engine that it was seen in.
        fixed_in: the version of the engine in which it is gone; empty if in none so far.
        since: the version of crosschip that avoids it.
        avoided_by: the functions that avoid it, rewrites, converters and refusals.
        inputs: the inputs of the run that goes wrong.
        before: the inputs of runs that must precede that one in the same program.
        right: what the outputs are by the operators' definitions.
        wrong: what the engine makes instead.
        tolerance: the relative error up to which an output is one or the other.
        reproduce: runs the engine itself, without the device, and returns the outputs.
        model: adds to a builder what hits the quirk if the device does not avoid it.
        open_sizes: whether all sizes of the inputs are open.
        processor: the feature of the processor, as Linux calls it, without which it does not occur.
        environment: the environment variables with which it occurs.
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
    environment: Mapping[str, str] = field(default_factory=dict)
    dies: bool = False

    def outcome(self) -> Outcome:
        """The outcome of the reproduction, in a process of its own where that may end."""
        return self._outcome_in_child() if self.dies or self.environment else self.outcome_here()

    def outcome_here(self) -> Outcome:
        """The outcome of the reproduction in this process."""
        try:
            return [np.asarray(output) for output in self.reproduce(self)]
        except ImportError:
            return NotInstalled()
        except (SyntaxError, TypeError, NameError):
            raise  # of the reproduction itself
        except Exception as error:  # engines raise whatever they like
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
        """Run the reproduction, and tell what has become of the quirk."""
        outcome = self.outcome()
        if isinstance(outcome, NotInstalled):
            return Verdict.NOT_INSTALLED
        if self._matches(outcome, self.right):
            here = not self.processor or self.processor in processor().split()
            return Verdict.GONE if here else Verdict.ELSEWHERE
        return Verdict.PRESENT if self._matches(outcome, self.wrong) else Verdict.DIFFERENT

    def is_news(self, verdict: Verdict) -> bool:
        """Tell whether a verdict is not what the record says."""
        return verdict is Verdict.DIFFERENT or (verdict is Verdict.GONE and not self.fixed_in)

    def is_right(self, outputs: Sequence[Array]) -> bool:
        """Tell whether outputs are those that the operators' definitions ask for."""
        return self._matches(outputs, self.right)

    def _matches(self, outcome: Outcome, expected: Any) -> bool:
        if isinstance(expected, Differs):
            return not isinstance(outcome, Raises | NotInstalled)
        if isinstance(expected, Raises):
            return isinstance(outcome, Raises) and expected.text in outcome.text
        if isinstance(expected, Dies) or isinstance(outcome, Raises | Dies | NotInstalled):
            return isinstance(expected, Dies) and isinstance(outcome, Dies)
        several = expected if isinstance(expected, tuple) else (expected,)
        return len(outcome) >= len(several) and all(
            _is_close(one, np.asarray(other), self.tolerance)
            for one, other in zip(outcome, several, strict=False)
        )

    def build(self) -> Model:
        """The model that hits the quirk; its inputs are x0, x1, …, its outputs y0, y1, …."""
        assert self.model is not None, "the caller has looked"
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
        engine: the device that drives it.
        versions: the versions that quirks were seen in where nothing else is said.
        run: gives a reproduction's function, and its record, to the engine.
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
        """Decorator: the function is the reproduction of a quirk, which gets its name from it.

        Lists among the inputs are taken as float32. For the rest see `Quirk`. One that is fixed is
        avoided as long as crosschip takes older versions of the engine.
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
    """The quirks of an engine by name.

    Raises:
        ImportError: the engine is not installed.
    """
    table: Quirks = import_module(f"crosschip.devices.{engine}.quirks").quirk
    return table.records


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
    if actual.dtype.kind in "biu" and expected.dtype.kind in "biu":
        return bool((actual == expected).all())
    one, other = actual.astype(np.float64), expected.astype(np.float64)
    return bool(np.allclose(one, other, rtol=tolerance, atol=0, equal_nan=True))
