"""Projects that are generated again: what has been edited stays, and it is said what changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.opdef.generation.projects import SIGNALS, generated, linted

from crosschip.ir import InputError
from crosschip.opdef.generation.writer import State

TEXT = SIGNALS.read_text("utf-8")
STEEPNESS = """            <Parameter>
                <Name>steepness</Name>
                <Mandatory>false</Mandatory>
                <Datatype>QNN_DATATYPE_FLOAT_32</Datatype>
                <Shape>
                    <Rank>SCALAR</Rank>
                </Shape>
                <Default>1</Default>
            </Parameter>
            <SupportedBackend>CPU</SupportedBackend>
            <SupportedBackend>HTP</SupportedBackend>
"""


def without(operator: str) -> str:
    """Return the document without an operator."""
    start = TEXT.index(f"<OpDef>\n            <Name>{operator}<")
    stop = TEXT.index("</OpDef>", start) + len("</OpDef>")
    return TEXT[:start] + TEXT[stop:]


def with_steepness() -> str:
    """Return the document with another parameter, and another default, of the first operator."""
    start = TEXT.index("            <SupportedBackend>CPU")
    return TEXT[:start].replace(">1<", ">2<") + STEEPNESS + TEXT[TEXT.index("        </OpDef>") :]


@pytest.fixture
def again(tmp_path: Path) -> Callable[..., Any]:
    """Generates the project of a document."""

    def make(text: str = TEXT, target: str = "python", **more: Any) -> Any:
        document = tmp_path / "document.xml"
        document.write_text(text, "utf-8")
        return generated(tmp_path / "out", target, document, **more)

    return make


def states(report: Any) -> dict[str, str]:
    return {path: str(state) for path, state in report.files.items() if state is not State.SAME}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("target", ["python", "native"])
def test_nothing_changes_where_nothing_has(target: str, again: Any) -> None:
    first = again(target=target)
    assert set(first.files.values()) == {State.NEW}
    assert set(first.files) | {"generated.json"} == set(contents(first.folder))
    before = contents(first.folder)
    second = again(target=target)
    assert (states(second), second.changes) == ({}, [])
    assert contents(first.folder) == before


def test_what_is_edited_is_left_alone_and_it_is_said_what_changed(again: Any) -> None:
    folder = again().folder
    mine = folder / "src" / "signals" / "soft_clip.py"
    mine.write_text("# mine\n", "utf-8")
    report = again(with_steepness())
    assert mine.read_text("utf-8") == "# mine\n"
    assert states(report) == {
        "src/signals/operators.xml": "renewed",
        "src/signals/soft_clip.py": "kept",
    }
    assert list(map(str, report.changes)) == [
        "SoftClip: Parameter bound/Default is 2, and was 1; Parameter steepness is new; "
        "src/signals/soft_clip.py was edited and left alone"
    ]


def test_what_is_not_edited_is_renewed(again: Any) -> None:
    folder = again().folder
    report = again(with_steepness())
    assert states(report) == {
        "src/signals/operators.xml": "renewed",
        "src/signals/soft_clip.py": "renewed",
    }
    assert "steepness: a parameter" in (folder / "src/signals/soft_clip.py").read_text("utf-8")


@pytest.mark.parametrize("target", ["python", "native"])
def test_an_operator_comes_and_goes(target: str, again: Any) -> None:
    folder = again(without("Mix"), target).folder
    report = again(TEXT, target)
    files = {"src/signals/mix.py", "tests/test_mix.py"}
    files |= {"native/mix.c"} if target == "native" else set()
    assert {path for path, state in report.files.items() if state is State.NEW} == files
    assert list(map(str, report.changes)) == ["Mix: is new"]
    linted(folder)
    report = again(without("Mix"), target)
    assert {path for path, state in report.files.items() if state is State.REMOVED} == files
    assert list(map(str, report.changes)) == ["Mix: is gone"]
    assert not any("mix" in path for path in contents(folder))
    assert "mix" not in (folder / "src/signals/__init__.py").read_text("utf-8")


def test_what_was_edited_of_an_operator_that_is_gone_is_left(again: Any) -> None:
    folder = again().folder
    test = folder / "tests" / "test_mix.py"
    test.write_text("# mine\n", "utf-8")
    for _ in range(2):
        report = again(without("Mix"))
        assert test.read_text("utf-8") == "# mine\n"
        assert states(report)["tests/test_mix.py"] == "left"
    record = json.loads((folder / "generated.json").read_text("utf-8"))
    assert record["operator_of_file"]["tests/test_mix.py"] == "Mix"
    report = again(TEXT)
    assert test.read_text("utf-8") == "# mine\n"
    assert list(map(str, report.changes)) == [
        "Mix: is new; tests/test_mix.py was edited and left alone"
    ]


def test_files_of_the_whole_package_that_are_out_of_date_are_named(again: Any) -> None:
    folder = again(without("Mix")).folder
    front = folder / "src" / "signals" / "__init__.py"
    front.write_text(front.read_text("utf-8") + "\n# mine\n", "utf-8")
    (folder / "README.md").write_text("mine", "utf-8")
    again(without("Mix"))
    report = again(TEXT.replace('Version="1.2"', 'Version="2.0"'))
    assert list(map(str, report.changes)) == [
        "Mix: is new",
        "Version is 2.0, and was 1.2; README.md and src/signals/__init__.py were edited and left "
        "alone",
    ]
    assert 'version = "2.0"' in (folder / "pyproject.toml").read_text("utf-8")


def test_what_is_deleted_is_written_anew(again: Any) -> None:
    folder = again().folder
    (folder / "src" / "signals" / "mix.py").unlink()
    shutil.rmtree(folder / "tests")
    report = again()
    assert set(states(report).values()) == {"new"}
    assert len(states(report)) == 4


def test_a_file_of_the_users_stands_where_a_new_operator_would(again: Any) -> None:
    folder = again(without("Mix")).folder
    (folder / "src" / "signals" / "mix.py").write_text("MINE = 1\n", "utf-8")
    report = again(TEXT)
    assert states(report)["src/signals/mix.py"] == "kept"
    assert (folder / "src" / "signals" / "mix.py").read_text("utf-8") == "MINE = 1\n"


def test_backends_come_and_go(again: Any) -> None:
    folder = again(backends=["openvino"]).folder
    (folder / "src/signals/on_openvino/mix.py").write_text("# mine\n", "utf-8")
    report = again(backends=["openvino", "HTP"])
    assert not report.changes
    report = again(backends=["HTP"])
    assert not (folder / "src/signals/on_openvino/soft_clip.py").exists()
    assert (folder / "src/signals/on_openvino/mix.py").read_text("utf-8") == "# mine\n"
    assert (folder / "src/signals/on_onnxruntime/soft_clip.py").exists()
    assert list(map(str, report.changes)) == [
        "Widen: is of none of the backends",
        "Mix: is of none of the backends; src/signals/on_openvino/mix.py was edited and left alone",
    ]


def test_folders_that_are_empty_are_gone(again: Any) -> None:
    folder = again(backends=["openvino"]).folder
    again()
    assert not (folder / "src/signals/on_openvino").exists()


def test_definitions_that_are_edited_in_the_project_are_read_from_there(again: Any) -> None:
    folder = again().folder
    own = folder / "src" / "signals" / "operators.xml"
    own.write_text(with_steepness(), "utf-8")
    before = contents(folder)
    with pytest.raises(InputError, match=r"operators\.xml: has been edited.*generate from it"):
        again()
    assert contents(folder) == before
    report = generated(folder.parent, "python", own)
    assert states(report) == {"src/signals/soft_clip.py": "renewed"}
    assert own.read_text("utf-8") == with_steepness()
    assert str(report.changes[0]).startswith("SoftClip: Parameter bound/Default is 2")


def test_supplements_are_compared_too(again: Any) -> None:
    supplement = (
        '<SupplementalOpDefList Backend="HTP"><SupplementalOpDef><Name>SoftClip</Name><Input>'
        "<Name>in[0]</Name><Datatype>QNN_DATATYPE_FLOAT_16</Datatype></Input></SupplementalOpDef>"
        "</SupplementalOpDefList></OpDefCollection>"
    )
    again()
    text = TEXT.replace("</OpDefCollection>", supplement)
    assert list(map(str, again(text).changes)) == ["SoftClip: its supplement for HTP is new"]
    here, end = text.rpartition("<Datatype>")[::2]
    other = f"{here}<Datatype>{end.replace('FLOAT_16', 'FLOAT_32')}"
    assert list(map(str, again(other).changes)) == [
        "SoftClip: for HTP, Input in[0]/Datatype QNN_DATATYPE_FLOAT_16 is gone; "
        "for HTP, Input in[0]/Datatype QNN_DATATYPE_FLOAT_32 is new"
    ]
    assert list(map(str, again().changes)) == ["SoftClip: its supplement for HTP is gone"]


FILES = ["README.md", "pyproject.toml", "src/signals/__init__.py", "src/signals/mix.py"]
FILES += ["src/signals/soft_clip.py", "tests/test_mix.py", "tests/test_widen.py"]
DOCUMENTS = [TEXT, with_steepness(), *map(without, ("Mix", "Widen", "SoftClip"))]


EDITS = st.dictionaries(st.sampled_from(FILES), st.sampled_from(["# a\n", "# b\n", None]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(DOCUMENTS), EDITS), max_size=4))
def test_no_edit_is_ever_lost(tmp_path_factory: pytest.TempPathFactory, steps: Any) -> None:
    """Whatever is edited or deleted, and whatever the definitions become, in any order."""
    folder = tmp_path_factory.mktemp("edits")
    document, project = folder / "document.xml", folder / "signals"
    document.write_text(TEXT, "utf-8")
    generated(folder, "python", document)
    mine: dict[str, str] = {}
    for text, edits in steps:
        for path, content in edits.items():
            mine.pop(path, None)
            (project / path).unlink(missing_ok=True)
            if content is not None:
                (project / path).write_text(content, "utf-8")
                mine[path] = content
        document.write_text(text, "utf-8")
        generated(folder, "python", document)
        for path, content in mine.items():
            assert (project / path).read_text("utf-8") == content
        fresh = generated(Path(folder_of(folder)), "python", document)
        for path in fresh.files:
            if path not in mine:
                assert (project / path).read_bytes() == (fresh.folder / path).read_bytes()
        assert set(contents(project)) == {*fresh.files, *mine, "generated.json"}


def folder_of(folder: Path) -> Path:
    """Return a folder in which nothing has been generated yet."""
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    return fresh
