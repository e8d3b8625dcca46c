"""What stands in the way of a project: said in a sentence, and nothing is written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.opdef.custom.documents import made, taken
from tests.opdef.generation.projects import SIGNALS, generated

from crosschip.ir import InputError
from crosschip.opdef.definitions import OpDef, OpDefCollection, OpDefList
from crosschip.opdef.documents import write
from crosschip.opdef.generation.generator import generate
from crosschip.opdef.generation.project import Target
from crosschip.opdef.problems import OpDefError


def document(folder: Path, *operators: str, package: str = "Tries", file: str = "a.xml") -> Path:
    """Return a document of operators that return what they take."""
    op_defs = tuple(
        OpDef(name=name, inputs=(taken(),), outputs=(made("y", "shape(y) == shape(X)"),))
        for name in operators
    )
    collection = OpDefCollection(
        package_name=package,
        domain="tries",
        version="1",
        definitions=OpDefList(op_defs=op_defs),
    )
    path = folder / file
    path.write_bytes(write(collection))
    return path


def refused(folder: Path, words: str, *files: Path, target: str = "python", **more: object) -> None:
    """Expect an error with words in it, and nothing new in the folder."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=words):
        generate(files or (SIGNALS,), Target(target), folder / "out", **more)  # type: ignore[arg-type]
    assert sorted(folder.rglob("*")) == before


def test_operators_of_one_module(tmp_path: Path) -> None:
    words = r"'HardSwish' and 'hard_swish' would both be written to src/tries/hard_swish\.py"
    refused(tmp_path, words, document(tmp_path, "HardSwish", "hard_swish"))


def test_packages_of_one_folder(tmp_path: Path) -> None:
    files = [
        document(tmp_path, "A", package=p, file=f"{p}1.xml") for p in ("AllTries", "all_tries")
    ]
    refused(tmp_path, "'AllTries' and 'all_tries' would both be written to the folder", *files)


def test_an_operator_called_as_the_folder_of_a_device(tmp_path: Path) -> None:
    file = document(tmp_path, "OnOpenvino")
    words = r"on_openvino\.py of the operator 'OnOpenvino' would stand beside the folder"
    refused(tmp_path, words, file, backends=["openvino"], devices=["openvino"])


def test_a_definition_that_makes_no_operator(tmp_path: Path) -> None:
    text = document(tmp_path, "A").read_text("utf-8").replace("<Mandatory>true", "<Mandatory>false")
    (tmp_path / "b.xml").write_text(text, "utf-8")
    refused(tmp_path, r"Tries\.A: no input must be there; make one Mandatory", tmp_path / "b.xml")


@pytest.mark.parametrize("target", ["python", "native"])
def test_a_folder_of_somebody_elses(target: str, tmp_path: Path) -> None:
    (tmp_path / "out" / "signals").mkdir(parents=True)
    (tmp_path / "out" / "signals" / "thesis.tex").write_text("…", "utf-8")
    words = r"signals: is there already, and was not generated: it has no generated\.json"
    refused(tmp_path, words, target=target)


def test_a_file_where_the_folder_would_be(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "signals").write_text("…", "utf-8")
    refused(tmp_path, "signals: is there already, and is no folder")


def test_a_file_where_the_output_would_be(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("…", "utf-8")
    refused(tmp_path, "signals: is there already, and is no folder")


def test_an_empty_folder_is_nobodys(tmp_path: Path) -> None:
    (tmp_path / "signals").mkdir()
    assert (generated(tmp_path).folder / "README.md").exists()


def test_another_target(tmp_path: Path) -> None:
    generated(tmp_path / "out", "python")
    refused(tmp_path, "was generated with --target python", target="native")


def test_another_package(tmp_path: Path) -> None:
    generated(tmp_path / "out")
    file = document(tmp_path, "A", package="signals")
    refused(tmp_path, "is the project of the package 'Signals'; choose another --output", file)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda record: "{", "generated.json: is not the record of a generated project"),
        (lambda record: json.dumps({**record, "format": 2}), "Invalid enum value 2"),
        (lambda record: json.dumps({**record, "document": "<x/>"}), "generated.json:1:1"),
        (
            lambda record: json.dumps({**record, "files": {"../other": "0"}}),
            "'../other' is no file",
        ),
        (lambda record: json.dumps({**record, "files": {"/etc/passwd": "0"}}), "is no file of the"),
    ],
)
def test_a_record_that_is_none(
    damage: Callable[[dict[str, object]], str], words: str, tmp_path: Path
) -> None:
    record = generated(tmp_path / "out").folder / "generated.json"
    record.write_text(damage(json.loads(record.read_text("utf-8"))), "utf-8")
    refused(tmp_path, words)


def test_backends_that_there_are_not(tmp_path: Path) -> None:
    refused(
        tmp_path,
        r"Signals: there is no backend or device 'opnvino' \(did you mean 'openvino'\?\)",
        backends=["opnvino"],
        devices=["openvino"],
    )


def test_a_backend_that_has_no_operator(tmp_path: Path) -> None:
    end = "</OpDefCollection>"
    told = '<SupplementalOpDefList Backend="GPU"><SupportedOps/></SupplementalOpDefList>'
    text = SIGNALS.read_text("utf-8").replace(end, told + end)
    (tmp_path / "a.xml").write_text(text, "utf-8")
    refused(tmp_path, "GPU supports none of its operators", tmp_path / "a.xml", backends=["GPU"])


def test_documents_that_do_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<OpDefCollection>", "utf-8")
    with pytest.raises(OpDefError, match=r"a\.xml:1:"):
        generated(tmp_path / "out", "python", tmp_path / "a.xml")
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    refused(tmp_path, "cannot be written: File name too long", document(tmp_path, "A" * 300))


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o555)
    refused(tmp_path, "out/signals: cannot be written: Permission denied")


@pytest.mark.parametrize("again", [False, True])
def test_a_disk_that_is_full(again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever file does not fit any more, all is as it was."""
    folder = tmp_path / "out"
    if again:
        generated(folder)
        (folder / "signals" / "README.md").unlink()
        (folder / "signals" / "pyproject.toml").unlink()
    written = Path.write_bytes
    for room in range(3):
        left = room

        def write_bytes(path: Path, content: bytes) -> int:
            nonlocal left
            if left == 0:
                raise OSError(28, "No space left on device", str(path))
            left -= 1
            return written(path, content)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", write_bytes)
            before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
            with pytest.raises(InputError, match=r"signals: cannot be written: No space left"):
                generated(folder)
        assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert set(generated(folder).files) >= {"README.md"}


def test_what_was_cut_off_is_finished_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are in their place already are not taken for edited ones."""
    project = generated(tmp_path).folder
    file = tmp_path / "a.xml"
    file.write_text(SIGNALS.read_text("utf-8").replace(">1<", ">3<"), "utf-8")
    replaced = os.replace
    moves: list[Path] = []

    def replace(source: Path, target: Path) -> None:
        if len(moves) == 1:
            raise OSError(5, "Input/output error")
        moves.append(target)
        replaced(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(InputError, match="cannot be written: Input/output error"):
            generated(tmp_path, "python", file)
    report = generated(tmp_path, "python", file)
    assert "kept" not in report.files.values()
    assert "3 if it is left out" in (project / "src/signals/soft_clip.py").read_text("utf-8")
    assert [change.operator for change in report.changes] == ["SoftClip"]
