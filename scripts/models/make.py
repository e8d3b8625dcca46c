"""Write the models that tests and benchmarks run on, with Paddle's own outputs for them.

Run with Python 3.11 or 3.12: python scripts/models/make.py [--out DIRECTORY] [--only NAME...]
What is finished is kept, so running again goes on where the last run stopped.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
BUILD = SCRIPTS.parents[1] / "build"
PADDLE2, PADDLE3 = ORACLES = ("paddle-2.6.2", "paddle-3.3.1")
VISION = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "resnet50",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
)


@dataclass(frozen=True)
class Target:
    """A directory of models that a script writes in the environment of an oracle.

    What it needs comes before it and belongs to the same oracle.
    """

    path: str
    oracle: str
    script: str
    needs: tuple[str, ...] = ()

    def called(self, name: str) -> bool:
        """Tell whether `name` is the whole path or its first or last part."""
        return name in (self.path, *self.path.split("/"))


TARGETS = (
    Target("ocr-paddle", PADDLE2, "ocr.py"),
    Target("ocr-onnx", PADDLE2, "ocr.py", needs=("ocr-paddle",)),
    *(Target(f"layouts/{n}", PADDLE2, "layouts.py") for n in ("pdmodel", "combined", "separate")),
    *(Target(f"paddle2/{name}", PADDLE2, "vision.py") for name in VISION),
    Target("operators/pdmodel", PADDLE2, "operators.py"),
    Target("control/pdmodel", PADDLE2, "control.py"),
    Target("arrays/pdmodel", PADDLE2, "arrays.py"),
    Target("networks/pdmodel", PADDLE2, "networks.py"),
    Target("layouts/json", PADDLE3, "layouts.py"),
    *(Target(f"paddle3/{name}", PADDLE3, "vision.py") for name in VISION),
    Target("operators/json", PADDLE3, "operators.py"),
    Target("control/json", PADDLE3, "control.py"),
    Target("arrays/json", PADDLE3, "arrays.py"),
    Target("networks/json", PADDLE3, "networks.py"),
    Target("onnx", PADDLE3, "convert.py", needs=tuple(f"paddle3/{name}" for name in VISION)),
)


class StepError(Exception):
    """A step failed; the message says which, how and what to do."""


def main() -> None:
    """Make the targets asked for, those of different oracles at the same time."""
    started = time.perf_counter()
    out, names = arguments()
    missing = [target for target in selected(names) if not (out / target.path).exists()]
    if missing and sys.version_info >= (3, 13):
        sys.exit("Paddle 2.6.2 has no wheels for this Python: run with 3.11 or 3.12.")
    print(f"{len(missing)} directories to write below {out}", flush=True)
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(make_all, oracle, missing, out) for oracle in ORACLES]
    errors = [str(error) for run in runs if isinstance(error := run.exception(), StepError)]
    if errors:
        sys.exit("\n\n".join(errors))
    for run in runs:
        run.result()
    print(f"complete after {time.perf_counter() - started:.0f} s")


def arguments() -> tuple[Path, list[str]]:
    """Return the output directory and the names to make (all if empty) of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=BUILD / "models", help="where to write")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="what to write")
    options = parser.parse_args()
    for name in options.only:
        if not any(target.called(name) for target in TARGETS):
            parser.error(f"nothing is called {name}; there is {', '.join(t.path for t in TARGETS)}")
    return options.out.resolve(), options.only


def selected(names: Sequence[str]) -> list[Target]:
    """Return the targets with one of these names, and what they need; all for no names."""
    chosen = [target for target in TARGETS if not names or any(map(target.called, names))]
    needed = {path for target in chosen for path in (target.path, *target.needs)}
    return [target for target in TARGETS if target.path in needed]


def make_all(oracle: str, targets: Sequence[Target], out: Path) -> None:
    """Make those of the targets that belong to an oracle, one after the other."""
    own = [target for target in targets if target.oracle == oracle]
    if not own:
        return
    python = environment(oracle)
    for target in own:
        with staged(out / target.path) as stage, timed(target.path, stage):
            name = Path(target.path).name
            run(target.path, [python, SCRIPTS / target.script, name, stage])


def environment(oracle: str) -> Path:
    """Return the interpreter of an oracle's environment, which is created if it must be.

    The environment's copy of the list of requirements comes last and marks it complete.
    """
    home = BUILD / "oracles" / oracle
    wanted, installed = SCRIPTS / f"{oracle}.txt", home / "requirements.txt"
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    if installed.exists() and installed.read_bytes() == wanted.read_bytes():
        return python
    print(f"installing {oracle} into {home}", flush=True)
    with timed(f"environment {oracle}", home):
        run(f"environment {oracle}", [sys.executable, "-m", "venv", "--clear", home])
        run(f"environment {oracle}", [python, "-m", "pip", "install", "--requirement", wanted])
        shutil.copy(wanted, installed)
    return python


def run(step: str, command: Sequence[str | Path]) -> None:
    """Run a command in silence.

    Raises:
        StepError: it failed; the message ends with the last of what it printed.
    """
    # One thread each: the oracles share the cores, and sums keep one order. One seed: Paddle 2
    # puts variables into sets, and writes them in the order in which these iterate.
    variables = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables,
        check=False,
    )
    if result.returncode:
        log = "\n".join(result.stdout.splitlines()[-20:])
        advice = "What is finished is kept: remove the cause shown above and run this again."
        raise StepError(f"{step} failed ({result.returncode}):\n{log}\n{advice}")


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """Yield a new, empty directory that is renamed to `target` if the body succeeds."""
    stage = target.with_name(f"{target.name}.partial")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    yield stage
    stage.rename(target)


@contextmanager
def timed(step: str, directory: Path) -> Iterator[None]:
    """Print how long the body took and how large it left the directory."""
    started = time.perf_counter()
    yield
    size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6
    print(f"{step:28} {size:8.2f} MB {time.perf_counter() - started:7.1f} s", flush=True)


if __name__ == "__main__":
    main()
