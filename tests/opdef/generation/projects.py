"""Projects that are generated, filled in as their users would, and built."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosschip.opdef.generation.generator import Report, generate
from crosschip.opdef.generation.project import Target

SIGNALS = Path(__file__).with_name("signals.xml")

IN_PYTHON = {
    "soft_clip.py": {"reference": "return in0 / (1 + self.bound * abs(in0))"},
    "widen.py": {
        "reference": "return np.tile(rows, (1, self.times))",
        "infer_shape": "return (self.rows.type.shape[0], self.rows.type.shape[1] * self.times)",
    },
    "mix.py": {"reference": "return sum(ini) + (0 if long is None else long)"},
}
IN_C = {
    "soft_clip.c": """
    for (crosschip_walk from = crosschip_first(in0), to = crosschip_first(out0); to.left;
         crosschip_next(&from), crosschip_next(&to)) {
        double x = crosschip_read(&from);
        crosschip_write(&to, x / (1 + crosschip_number(bound) * fabs(x)));
    }
    return CROSSCHIP_KERNEL_OK;""",
    "widen.c": """
    for (crosschip_walk to = crosschip_first(wide); to.left; crosschip_next(&to)) {
        int64_t from[2] = {to.index[0], to.index[1] % rows->shape[1]};
        crosschip_write(&to, crosschip_real(rows, from));
    }
    return times->rank == 0 ? CROSSCHIP_KERNEL_OK : CROSSCHIP_KERNEL_FAILED;""",
    "mix.c": """
    for (crosschip_walk to = crosschip_first(out0); to.left; crosschip_next(&to)) {
        double sum = long_->rank < 0 ? 0 : crosschip_real(long_, to.index);
        for (int32_t i = 0; i < call->input_count - 1; ++i)
            sum += crosschip_real(&ini[i], to.index);
        crosschip_write(&to, sum);
    }
    return CROSSCHIP_KERNEL_OK;""",
}


def generated(
    folder: Path, target: str = "python", *files: Path, backends: Sequence[str] = ()
) -> Report:
    """Return the project of the signals, or of other documents of one package, in a folder."""
    (report,) = generate(
        files or (SIGNALS,),
        Target(target),
        folder,
        backends=backends,
        devices=("openvino", "onnxruntime", "qualcomm"),
    )
    return report


def fill_in(project: Path) -> None:
    """Write what the stubs of the signals leave out, in Python or in C."""
    native = (project / "native").is_dir()
    for name, functions in IN_PYTHON.items():
        (file,) = project.glob(f"src/*/{name}")
        text = file.read_text("utf-8").replace(
            "from crosschip import", "import numpy as np\nfrom crosschip import"
        )
        for function, body in functions.items():
            stub = rf'raise NotImplementedError\("write \w+\.{function}"\)'
            text, count = re.subn(stub, body, text)
            assert count == (0 if native and function == "reference" else 1)
        file.write_text(text, "utf-8")
    for name, body in IN_C.items() if native else ():
        file = project / "native" / name
        file.write_text(with_body(file.read_text("utf-8"), body), "utf-8")


def with_body(kernel: str, body: str) -> str:
    """Return a stub of a kernel with a body in its place."""
    text, count = re.subn(
        r"\n    /\* Compute.*?__FILE__\);", lambda _: body, kernel, flags=re.DOTALL
    )
    assert count == 1
    return text


def build(project: Path, *, compiler: str = "cc") -> None:
    """Make the library; a warning is an error."""
    ran(["make", f"CC={compiler}", "CFLAGS=-O2 -Werror -pedantic -Wconversion"], project)


def environment(*paths: Path) -> Mapping[str, str]:
    """Return the environment of a process in which Python finds what is in folders."""
    path = os.pathsep.join([*map(str, paths), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


def ran(command: Sequence[str], folder: Path, *paths: Path, status: int = 0) -> str:
    """Return what a command prints, whose exit status must be `status`."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(*paths),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def own_tests(project: Path, *, status: int = 0) -> str:
    """Return what the project's own tests print."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return ran(command, project, project / "src", status=status)


def linted(project: Path) -> None:
    """Have the linter, the formatter and the type checker look at a project."""
    ran([sys.executable, "-m", "ruff", "check", "--no-cache", "."], project)
    ran([sys.executable, "-m", "ruff", "format", "--no-cache", "--check", "."], project)
