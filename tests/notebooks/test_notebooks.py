"""The notebooks of the examples run in a kernel, and show what they should."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.modelling import ROOT, python_path

nbformat = pytest.importorskip("nbformat", reason="notebooks run where group docs is installed")
nbclient = pytest.importorskip("nbclient", reason="notebooks run where group docs is installed")
pytest.importorskip("ipykernel", reason="notebooks run where group docs is installed")

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def executed(cells: list[str], folder: Path) -> Any:
    """A notebook with such cells after a kernel of this Python has run it in a folder."""
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    return run(notebook, folder)


def run(notebook: Any, folder: Path) -> Any:
    from jupyter_client import KernelManager

    manager = KernelManager()
    manager.kernel_spec.argv[0] = sys.executable
    client = nbclient.NotebookClient(
        notebook, km=manager, timeout=300, resources={"metadata": {"path": str(folder)}}
    )
    environment = {
        **os.environ, "PYTHONPATH": python_path(), "CROSSCHIP_CACHE_DIR": str(folder / "cache"),
    }  # fmt: skip
    return client.execute(env=environment, cleanup_kc=True)


def html_of(cell: Any) -> list[str]:
    """The HTML of the outputs of a cell."""
    return [output.data.get("text/html", "") for output in cell.outputs if "data" in output]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_of_the_examples_runs(path: Path, tmp_path: Path) -> None:
    notebook = run(nbformat.read(path, as_version=4), tmp_path)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    for cell in cells:
        assert cell.outputs, cell.source
        assert not [o for o in cell.outputs if o.output_type == "error"]
        assert not [o.text for o in cell.outputs if o.get("name") == "stderr"], cell.source
    tables = "".join(html for cell in cells for html in html_of(cell))
    for text in ("Model model", "Compiled model model", "Benchmark", "ms a run", "calls: median"):
        assert text in tables
    saved = nbformat.read(path, as_version=4).cells
    assert not any(cell.get("outputs") for cell in saved), "outputs are not committed"


def test_bars_appear_without_being_asked_for_and_disappear(tmp_path: Path) -> None:
    work = (
        "import threading, time\n"
        "from crosschip import progress\n"
        "from crosschip.progress import task\n"
        "published = get_ipython().display_pub.publish\n"
        "shown = []\n"
        "def publish(data, *arguments, **named):\n"
        "    shown.append(data['text/html'])\n"
        "    published(data, *arguments, **named)\n"
        "get_ipython().display_pub.publish = publish\n"
        "with task('work on <b>', total=2) as work:\n"
        "    work.advance()\n"
        "    time.sleep(1.8)\n"
        "print(shown[0])\n"
        "print([t.name for t in threading.enumerate() if 'crosschip' in t.name])"
    )
    quick = "with task('quick'):\n    pass"
    hidden = "progress.hide()\nwith task('hidden'):\n    time.sleep(1.5)\n"
    first, second, third = executed([work, quick, hidden], tmp_path).cells
    (text,) = [output.text for output in first.outputs if output.output_type == "stream"]
    assert "work on &lt;b&gt;" in text
    assert '<progress value="1" max="2">' in text
    assert text.splitlines()[-1] == "[]"
    assert html_of(first) == [""]
    assert second.outputs == third.outputs == []
