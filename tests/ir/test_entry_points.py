"""Entry points equal those of `importlib.metadata`, however packages are installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

_COMPARE = """
import json, sys
BEFORE
from crosschip.ir.entry_points import _read_all
found = list(_read_all())
asked = "importlib.metadata" in sys.modules
told = sorted((e.group, e.name, e.value, e.module, e.dist.name) for e in found)
from importlib import metadata
wanted = metadata.entry_points()
wanted = [e for group in wanted.groups for e in wanted.select(group=group)]
wanted = sorted((e.group, e.name, e.value, e.module, e.dist.name) for e in wanted)
assert told == wanted, set(told) ^ set(wanted)
print(json.dumps([asked, [line for line in told if line[0] == "here"]]))
"""


def run(code: str, *folders: Path) -> str:
    searched = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": searched}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def compare(*folders: Path, before: str = "") -> tuple[bool, list[list[str]]]:
    """Return whether `importlib.metadata` was used, and the entry points of the group `here`."""
    asked, found = json.loads(run(_COMPARE.replace("BEFORE", before), *folders))
    return asked, found


def install(folder: Path, package: str, text: str, kind: str = "dist-info") -> Path:
    """Write the metadata of a package into a folder."""
    place = folder / f"{package}-1.0.{kind}"
    place.mkdir(parents=True)
    metadata = "METADATA" if kind == "dist-info" else "PKG-INFO"
    (place / metadata).write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text(text, "utf-8")
    return place


def test_what_is_installed_in_folders_is_found_without_the_module(tmp_path: Path) -> None:
    text = "a = b:c\n\n# none\n[here]\n  é= m.n:o.p \nplain=module\n[ there ]\nx=y:z\n[here]\nq=r:s"
    install(tmp_path, "one", text)
    install(tmp_path, "two", "[here]\nt = u", "egg-info")
    asked, found = compare(tmp_path, tmp_path / "missing")
    assert not asked
    assert {name for _, name, *_ in found} == {"é", "plain", "q", "t"}


def test_the_first_of_several_packages_of_a_name_counts(tmp_path: Path) -> None:
    install(tmp_path / "a", "Some.Thing", "[here]\na = first")
    install(tmp_path / "b", "some_thing", "[here]\nb = second")
    asked, found = compare(tmp_path / "a", tmp_path / "b")
    assert not asked
    assert [value for _, _, value, *_ in found] == ["first"]


def packed(folder: Path) -> Path:
    """Create a zip file of packages."""
    with zipfile.ZipFile(folder / "packed.zip", "w") as archive:
        archive.writestr("one-1.0.dist-info/METADATA", "Name: one\nVersion: 1.0\n")
        archive.writestr("one-1.0.dist-info/entry_points.txt", "[here]\na = b")
    return folder / "packed.zip"


def egg(folder: Path) -> Path:
    """Create a folder that is a package."""
    place = folder / "one-1.0.egg"
    (place / "EGG-INFO").mkdir(parents=True)
    (place / "EGG-INFO" / "PKG-INFO").write_text("Name: one\nVersion: 1.0\n")
    (place / "EGG-INFO" / "entry_points.txt").write_text("[here]\na = b")
    return place


def test_what_needs_extras_is_found_without_the_module(tmp_path: Path) -> None:
    install(tmp_path, "one", "[here]\na = b:c [extra]")
    asked, found = compare(tmp_path)
    assert not asked
    assert len(found) == 1


@pytest.mark.parametrize("unusual", [packed, egg])
def test_what_is_installed_otherwise_is_left_to_the_module(
    tmp_path: Path, unusual: Callable[[Path], Path]
) -> None:
    asked, found = compare(unusual(tmp_path))
    assert asked
    assert len(found) == 1


def test_other_ways_to_find_packages_are_left_to_the_module(tmp_path: Path) -> None:
    before = (
        "class Finder:\n"
        "    find_spec = find_distributions = staticmethod(lambda *given: None or [])\n"
        "Finder.find_spec = staticmethod(lambda *given: None)\n"
        "sys.meta_path.append(Finder)"
    )
    assert compare(tmp_path, before=before)[0]


def test_a_module_that_is_there_is_asked(tmp_path: Path) -> None:
    install(tmp_path, "one", "[here]\na = b")
    asked, found = compare(tmp_path, before="import importlib.metadata")
    assert asked
    assert len(found) == 1


def test_what_an_entry_point_names_is_loaded(tmp_path: Path) -> None:
    install(tmp_path, "one", "[here]\na = module\nb = module:A.b\nc = nowhere\nd = module:x")
    (tmp_path / "module.py").write_text("class A:\n    b = 7\n")
    run(
        "from crosschip.ir.entry_points import entry_points\n"
        "import sys\n"
        "found = {entry.name: entry for entry in entry_points('here')}\n"
        "import module\n"
        "assert found['a'].load() is module and found['b'].load() == 7\n"
        "for name, error in (('c', ModuleNotFoundError), ('d', AttributeError)):\n"
        "    try:\n"
        "        found[name].load()\n"
        "    except error:\n"
        "        continue\n"
        "    raise AssertionError(name)\n"
        "assert 'importlib.metadata' not in sys.modules\n"
        "assert found['a'].dist.name == 'one'\n",
        tmp_path,
    )
