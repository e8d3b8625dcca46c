"""Figures of a machine with a GPU that has JAX and PyTorch and no network.

python scripts/gpu pack                               # here: wheels and models, into build/gpu
python scripts/gpu run --output DIR --minutes 30      # there: everything, in order of value
python scripts/gpu run --output DIR --parts kit       # there: one part; DIR keeps the others
python scripts/gpu page --output DIR                  # the page again, from results of several runs

A checkout with `build/gpu` in it is all that the machine needs. What was measured is in DIR, as
`results.json` and `page.md`, also after an interruption.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[0] = str(ROOT / "scripts")

from gpu import environment  # noqa: E402

PACKED = ROOT / "build" / "gpu"
DEVICES = ("xla:gpu:0", "torch:cuda:0")
_ALWAYS = ("machine", "devices")
"""The parts that every run begins with."""

_LEAST_SECONDS, _GRACE_SECONDS = 20.0, 30.0
_ENVIRONMENT_FLAG = "--in-environment"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; return the exit status."""
    options = _parser().parse_args(arguments)
    return _TASKS[options.task](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python scripts/gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    pack = tasks.add_parser("pack", help="collect what the machine lacks")
    pack.add_argument("--python", default="3.12", help="its Python's version [%(default)s]")
    pack.add_argument("--architecture", default="x86_64", help="its processor's [%(default)s]")
    run = tasks.add_parser("run", help="measure")
    run.add_argument("--minutes", type=float, default=30.0, help="for everything [%(default)s]")
    run.add_argument("--device", action="append", help=f"may be repeated [{', '.join(DEVICES)}]")
    run.add_argument("--parts", type=lambda text: text.split(","), help="with commas [all]")
    run.add_argument("--quick", action="store_true", help="try everything on little")
    run.add_argument(_ENVIRONMENT_FLAG, action="store_true", help=argparse.SUPPRESS)
    page = tasks.add_parser("page", help="write the page again")
    for task in (pack, run):
        task.add_argument("--packed", type=Path, default=PACKED, help="the folder [%(default)s]")
    for task in (run, page):
        task.add_argument("--output", type=Path, required=True, help="the folder of the results")
    return parser


def _pack(options: argparse.Namespace) -> int:
    sys.path[1:1] = [str(ROOT / "src"), str(ROOT)]
    from gpu.packing import Target, pack

    for line in pack(options.packed, Target(options.python, options.architecture)):
        print(line, flush=True)
    return 0


def _run(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.in_environment or environment.is_complete():
        return _run_parts(options, begin)
    with tempfile.TemporaryDirectory() as folder:
        python = environment.make(Path(folder), options.packed / "wheels")
        left = options.minutes - (time.monotonic() - begin) / 60
        again = [str(python), __file__, *sys.argv[1:], _ENVIRONMENT_FLAG, f"--minutes={left}"]
        return subprocess.run(again, env=environment.variables()).returncode


def _run_parts(options: argparse.Namespace, begin: float) -> int:
    """Run the parts within the time; return 1 if one of them failed, else 0."""
    sys.path[1:1] = [str(ROOT / "src"), str(ROOT)]
    from gpu.page import write_page
    from gpu.parts import NAMES, part
    from gpu.results import add_remark, read

    end = begin + options.minutes * 60
    devices = options.device or list(DEVICES)
    names = [name for name in NAMES if name in (*_ALWAYS, *(options.parts or NAMES))]
    runs = [(name, d) for name in names for d in (devices if part(name).PER_DEVICE else [""])]
    failed, left_out = False, set[str]()
    while runs:
        name, device = runs.pop(0)
        if device in left_out:
            continue
        shares = [part(name).SHARE, *(part(n).SHARE for n, d in runs if d not in left_out)]
        left = end - time.monotonic()
        seconds = max(_LEAST_SECONDS, left * shares[0] / (sum(shares) or 1))
        print(f"== {name} {device}: {seconds:.0f} s", flush=True)
        failure = _run_part(options, name, device, seconds) if left > 0 else "has no time left"
        if failure:
            add_remark(options.output, name, device, f"{device}: the part {failure}")
            print(f"{name} {failure}", flush=True)
        failed |= bool(failure)
        opened = [figure for each in read(options.output, "devices") for figure in each.figures]
        left_out = {figure["name"] for figure in opened if figure["reason"]}
        write_page(options.output)
    print(f"wrote {write_page(options.output)}")
    return int(failed)


def _run_part(options: argparse.Namespace, name: str, device: str, seconds: float) -> str:
    """Run one part on one device in a process of its own; return how it failed, or nothing."""
    command = [
        *(sys.executable, "-m", "gpu.parts", name, f"--device={device}"),
        *(f"--until={time.time() + seconds}", f"--output={options.output.resolve()}"),
        *(
            f"--models={options.packed.resolve() / 'models'}",
            *(["--quick"] if options.quick else []),
        ),
    ]
    limit = seconds + _GRACE_SECONDS
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment.variables(), timeout=limit)
    except subprocess.TimeoutExpired:
        return f"did not end within {limit:.0f} s"
    return f"ended with exit status {done.returncode}" if done.returncode else ""


def _page(options: argparse.Namespace) -> int:
    sys.path[1:1] = [str(ROOT / "src"), str(ROOT)]
    from gpu.page import write_page

    print(f"wrote {write_page(options.output)}")
    return 0


_TASKS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "pack": _pack,
    "run": _run,
    "page": _page,
}

if __name__ == "__main__":
    sys.exit(main())
