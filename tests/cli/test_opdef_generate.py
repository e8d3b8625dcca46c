"""`crosschip opdef generate`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Crosschip
from tests.opdef.generation.projects import SIGNALS


def test_it_says_what_it_wrote_and_what_changed(crosschip: Crosschip, tmp_path: Path) -> None:
    command = ("opdef", "generate", "--target", "python", "--output", tmp_path)
    first = crosschip(*command, SIGNALS)
    assert (first.status, first.err) == (0, "")
    folder = tmp_path / "signals"
    lines = first.out.splitlines()
    assert lines[0] == f"Signals in {folder}: SoftClip, Widen, Mix"
    assert "  new      src/signals/soft_clip.py" in lines
    assert lines[-1] == f"next: pip install -e {folder} && pytest {folder}"
    (folder / "src/signals/widen.py").write_text("# mine\n", "utf-8")
    document = tmp_path / "a.xml"
    document.write_text(
        SIGNALS.read_text("utf-8").replace("1 &lt;= times", "2 &lt;= times"), "utf-8"
    )
    second = crosschip(*command, document)
    assert second.out.splitlines()[1:-1] == [
        "  renewed  src/signals/operators.xml",
        "  kept     src/signals/widen.py",
        "Widen: Parameter times/Constraint 0 is 2 <= times, and was 1 <= times; "
        "src/signals/widen.py was edited and left alone",
    ]


def test_the_same_as_a_document(crosschip: Crosschip, tmp_path: Path) -> None:
    command = ("opdef", "generate", SIGNALS, "--target", "native", "--output", tmp_path, "--json")
    (project,) = crosschip(*command, "--backend", "CPU").document["projects"]
    assert project["package"] == "Signals"
    assert project["folder"] == str(tmp_path / "signals")
    assert project["operators"] == ["SoftClip", "Widen", "Mix"]
    assert project["files"]["native/mix.c"] == "new"
    assert (project["changes"], len(project["notes"])) == ([], 1)
    (tmp_path / "signals" / "native" / "mix.c").write_text("/* mine */\n", "utf-8")
    (project,) = crosschip(*command, "--backend", "HTP").document["projects"]
    assert project["files"]["native/mix.c"] == "left"
    assert project["changes"][1] == {
        "operator": "Mix",
        "how": "removed",
        "what": ["is of none of the backends"],
        "edited": ["native/mix.c"],
    }


def test_what_stands_in_the_way_is_an_error(crosschip: Crosschip, tmp_path: Path) -> None:
    command = ("opdef", "generate", SIGNALS, "--target", "python", "--output", tmp_path)
    outcome = crosschip(*command, "--backend", "opnvino")
    assert (outcome.status, outcome.out) == (1, "")
    assert "there is no backend or device 'opnvino' (did you mean 'openvino'?)" in outcome.err
    assert not list(tmp_path.iterdir())
