"""The base class of devices whose compiler reads files."""

from __future__ import annotations

import os
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from crosschip.devices.kits.toolchain.program import OutputMap, ToolchainProgram, unpack
from crosschip.devices.kits.worker import Died, Refused, Worker
from crosschip.hal.capabilities import Capabilities, Instance, Sizing
from crosschip.hal.device import CompileError, Device
from crosschip.hal.options import Options
from crosschip.hal.program import Program
from crosschip.ir import DeviceError, Model, Operation

SECONDS = "600"
_UNRELATED = ("python", "seconds")
"""Properties that do not affect compiled programs: the tool's version is compared instead."""


class FileToolchain(Device):
    """Compiles whole segments with a vendor's compiler, as files that the device writes.

    Subclasses define `supports` or `query`, and `write`. The compiler and each program run in
    processes of their own. Segments have static sizes, unless the subclass declares otherwise.

    Attributes:
        package: the package of the tool, for pip.
        module: a module of the package, to check whether it is installed.
        script: the file of functions that drive the tool; see `crosschip.devices.kits.toolchain`.

    Raises:
        DeviceError: the tool is not installed, or a property is unknown.
    """

    package: ClassVar[str]
    script: ClassVar[Path]

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        self._python = self.properties.get("python") or self.interpreter()
        try:
            self._seconds = float(self.properties.get("seconds", SECONDS))
        except ValueError:
            wrong = self.properties["seconds"]
            raise DeviceError(f"property seconds is {wrong!r}, but must be a number") from None
        self._worker: Worker | None = None
        try:
            self._facts: Mapping[str, Any] = self._ask_tool("describe")
        except Refused as error:
            self.close()
            raise DeviceError(
                f"{error}; {self.package} must be installed for {self._python}, or another Python "
                f"be named by property python or {self.variable()}"
            ) from None

    @classmethod
    def code_files(cls) -> Sequence[Path]:
        return [cls.script]

    @property
    def compile_properties(self) -> Mapping[str, str]:
        return {k: v for k, v in self.properties.items() if k not in _UNRELATED}

    @classmethod
    def variable(cls) -> str:
        """Return the environment variable that names the interpreter."""
        return f"CROSSCHIP_{cls._stem().upper()}_PYTHON"

    @classmethod
    def _stem(cls) -> str:
        return cls.__name__.removesuffix("Device").lower()

    @classmethod
    def interpreter(cls) -> str:
        """Return the default Python interpreter of the tool."""
        return os.environ.get(cls.variable()) or sys.executable

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "python": f"the Python in whose environment {cls.package} is installed (by default "
            f"what {cls.variable()} names, or this one)",
            "seconds": f"how long the tool may take to compile, and to run ({SECONDS})",
        }

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return [Instance(kind=cls.kind, simulated=True, problem=cls.missing())]

    @classmethod
    def missing(cls) -> str:
        """Return a sentence that the tool is not installed; empty if it is installed."""
        python = Path(cls.interpreter())
        if python == Path(sys.executable):
            installed = find_spec(cls.module) is not None
        else:
            installed = any(python.parent.parent.glob(f"lib/python*/site-packages/{cls.module}"))
        return (
            ""
            if installed
            else f"{cls.package} is not installed; pip install it, into an environment of its own "
            f"if you like, whose Python {cls.variable()} names"
        )

    @property
    def version(self) -> str:
        return str(self._facts["version"])

    def capabilities(self) -> Capabilities:
        return Capabilities(sizing=Sizing.FIXED, concurrency=1)

    @property
    def real_boundary(self) -> bool:
        """Whether programs take and return reals where a segment's operands are quantized."""
        return False

    @abstractmethod
    def write(self, model: Model, folder: Path) -> None:
        """Write the input of the script's `compile` to a folder.

        Args:
            model: a segment; its outputs are distinct outputs of operations.
            folder: an empty folder.

        Raises:
            CompileError: the segment cannot be written.
        """

    def named_in(self, model: Model, message: str) -> Collection[Operation]:
        """Return the operations that the tool's message names as refused.

        Args:
            model: the segment.
            message: the part of the message that `complaint` returned.
        """
        return ()

    def complaint(self, message: str) -> str:
        """Return the part of the tool's message that is about refusals, with the reason first.

        Args:
            message: the exception's message, followed by the tool's output.
        """
        return message

    def compile(self, model: Model, options: Options) -> Program:
        try:
            return self._compile(model, options)
        except Refused as error:
            named = self.named_in(model, self.complaint(error.output))
            raise CompileError(self._reason(error), named) from error

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        folder = tempfile.TemporaryDirectory(prefix="crosschip-")
        try:
            files = unpack(saved, folder.name)
            settings = self._settings(model, options)
            return self._program(model, folder, files, settings, None)
        except BaseException:
            folder.cleanup()
            raise

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()

    def _reason(self, error: Refused) -> str:
        """Return the first line of the tool's message, or how its process ended."""
        lines = self.complaint(error.output).strip().splitlines()
        return str(error) if isinstance(error, Died) or not lines else lines[0]

    def _compile(self, model: Model, options: Options) -> Program:
        """Compile in a new process.

        Raises:
            Refused: the tool refused the model.
        """
        settings = self._settings(model, options)
        folder = tempfile.TemporaryDirectory(prefix="crosschip-")
        worker = None
        try:
            self.write(OutputMap(model).requested, Path(folder.name))
            worker = self._start(folder.name)
            reply = worker.call("compile", folder.name, settings, seconds=self._seconds)
            worker.call("load", folder.name, settings, seconds=self._seconds)
            return self._program(model, folder, reply.result, settings, worker)
        except BaseException:
            if worker is not None:
                worker.close()
            folder.cleanup()
            raise

    def _program(
        self,
        model: Model,
        folder: tempfile.TemporaryDirectory[str],
        files: Sequence[str],
        settings: Mapping[str, Any],
        worker: Worker | None,
    ) -> Program:
        return ToolchainProgram(
            model,
            folder,
            files,
            settings,
            self._start,
            self._seconds,
            worker,
            real=self.real_boundary,
        )

    def _settings(self, model: Model, options: Options) -> Mapping[str, Any]:
        """Return the script's settings as JSON data."""
        return {}

    def _start(self, folder: str | None = None) -> Worker:
        return Worker(self.name, self.script, self._python, folder)

    def _ask_tool(self, function: str, *arguments: Any) -> Any:
        """Return the result of a script function, called in a process for queries."""
        if self._worker is None or not self._worker.alive:
            if self._worker is not None:
                self._worker.close()
            self._worker = self._start()
        return self._worker.call(function, *arguments, seconds=self._seconds).result
