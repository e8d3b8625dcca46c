"""The time from the start of a process to its first answer.

Each process imports NumPy and crosschip or an engine, loads an ONNX file, compiles it and runs it
once. The time is measured outside, from the start of the process to its message that the answer
exists. *Cold* is with an empty cache folder, *warm* with the folder that an earlier process has
filled: crosschip's cache, ONNX Runtime's optimized model, OpenVINO's cache. crosschip is installed
as a package, so that its code files are not checked for changes. Processes with crosschip and with
the engines run in turn, and the minimum of several times counts, which other processes disturb
least. The ratio compares crosschip on its faster device with the faster engine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Annotated

import crosschip
from benchmarks.engines import engines
from benchmarks.fresh import seconds_to_answer
from benchmarks.models import model_file
from benchmarks.samples import BERT, NETWORKS, file_of
from benchmarks.subject import Column, Row

COLD_LIMIT, WARM_LIMIT = 1.2, 1.0
REQUIREMENT = (
    f"the first answer takes at most {COLD_LIMIT:g} times the time of the faster engine without a "
    f"cache, and at most {WARM_LIMIT:g} times with one"
)

_NETWORKS = ("ResNet50", "PP-OCRv4 rec", "MobileNetV3-small", BERT)
_OURS, _THEIRS = "crosschip", "engine"
_CHILD = Path(__file__).parents[1] / "children" / "first_answer.py"


@dataclass(frozen=True)
class Starting(Row):
    """One network."""

    network: Annotated[str, Column("network")]
    cold: Annotated[Mapping[str, float], Column("cold: {}, s", ".2f")]
    cold_ratio: Annotated[float, Column("cold ratio", ".2f")]
    warm: Annotated[Mapping[str, float], Column("warm: {}, s", ".2f")]
    warm_ratio: Annotated[float, Column("warm ratio", ".2f")]

    @property
    def met(self) -> bool:
        return self.cold_ratio <= COLD_LIMIT and self.warm_ratio <= WARM_LIMIT


def measure(*, quick: bool) -> Iterator[Starting]:
    """Four networks, each on every device with an engine."""
    for network in _NETWORKS[-2:-1] if quick else _NETWORKS:
        with file_of(network) as path:
            yield _measure(network, path, times=2 if quick else 9)


def _measure(network: str, path: Path, times: int) -> Starting:
    ways = [(way, device) for device in engines() for way in (_OURS, _THEIRS)]
    shapes = json.dumps({_input(network, path): NETWORKS[network]})
    cold: dict[tuple[str, str], float] = {}
    warm: dict[tuple[str, str], float] = {}
    with TemporaryDirectory() as home:
        installed = _installed(Path(home))
        for turn in range(times):
            for way in ways:
                folder = Path(home, *way, str(turn))
                folder.mkdir(parents=True)
                for found in (cold, warm):
                    taken = _seconds(*way, path, folder, shapes, installed)
                    found[way] = min(taken, found.get(way, taken))
    return Starting(network, _named(cold), _ratio(cold), _named(warm), _ratio(warm))


def _input(network: str, path: Path) -> str:
    """The name of the one input of a network."""
    if network != BERT:
        return next(iter(model_file(network, ".onnx").oracle(1).inputs))
    import onnx

    name: str = onnx.load(path, load_external_data=False).graph.input[0].name
    return name


def _installed(home: Path) -> Path:
    """A folder with a copy of crosschip in it as it lies where it is installed."""
    files = distribution("crosschip").files or ()
    metadata = next(Path(file.locate()) for file in files if file.name == "METADATA").parent
    package = Path(crosschip.__file__).parent
    for source in (package, metadata):
        copytree(source, home / "site" / source.name, ignore=ignore_patterns("__pycache__"))
    return home / "site"


def _seconds(
    way: str, device: str, path: Path, folder: Path, shapes: str, installed: Path
) -> float:
    """The time from starting a process to its answer."""
    command = [sys.executable, str(_CHILD), way, device, *map(str, (path, folder)), shapes]
    return seconds_to_answer(command, PYTHONPATH=str(installed))


def _named(found: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Times by what took them."""
    return {
        device if way == _THEIRS else f"crosschip on {device}": seconds
        for (way, device), seconds in found.items()
    }


def _ratio(found: Mapping[tuple[str, str], float]) -> float:
    """The least time of ours to the least of the engines'."""
    ours, theirs = (
        min(seconds for (way, _), seconds in found.items() if way == which)
        for which in (_OURS, _THEIRS)
    )
    return ours / theirs
