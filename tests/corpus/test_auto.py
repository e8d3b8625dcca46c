"""`"auto"` on real models out of packages, without a word about their open sizes."""

from __future__ import annotations

import ast
from contextlib import suppress

import onnxruntime
import pytest
from benchmarks.subjects.auto import MODELS
from corpus.entry import Entry
from corpus.packages import sources

import crosschip
from crosschip.ir import InputError, Model
from crosschip.runtime import discovery
from crosschip.runtime.inputs import random_inputs

ENTRIES = {
    member.entry.name: member.entry
    for source in sources()
    for member in source.members
    if member.entry.name in MODELS
}
ENGINES = ("onnxruntime", "openvino")


def test_there_are_ten_models() -> None:
    assert set(ENTRIES) == set(MODELS)
    assert len(MODELS) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_it_is_measured_at_sizes_that_run_or_tells_some(
    entry: Entry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is told is run by ONNX Runtime itself."""
    if not entry.file.exists():
        pytest.skip(f"not fetched: python -m corpus fetch {entry.name}")
    found = discovery.entries()
    monkeypatch.setattr(discovery, "entries", lambda: {n: found[n] for n in ENGINES})
    model = crosschip.load(entry.file)
    with crosschip.compile(entry.file, cache=False, threads=1) as compiled:
        choice = compiled.report.choice
        assert choice is not None
        told = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert bool(choice.problem) == any("no device was measured" in text for text in told)
        if choice.problem:
            shapes = ast.literal_eval(choice.problem.rpartition("shapes=")[2])
        else:
            shapes = dict(choice.shapes) if choice.shapes else hint(model)
            assert compiled.statistics().calls == 0
        _run(entry, model, shapes)
    _run(entry, model, hint(model))


def hint(model: Model) -> dict[str, int | tuple[int, ...]]:
    """The sizes that the message about open ones says; none are needed if only batches are open."""
    with suppress(InputError):
        random_inputs(model, {})
        return {}
    with pytest.raises(InputError) as raised:
        random_inputs(model, {})
    found: dict[str, int | tuple[int, ...]] = ast.literal_eval(
        str(raised.value).rpartition("shapes=")[2].removesuffix(")")
    )
    return found


def _run(entry: Entry, model: Model, shapes: dict[str, int | tuple[int, ...]]) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    onnxruntime.InferenceSession(entry.file, options).run(None, random_inputs(model, shapes))
