"""One model's speed on one engine: `python -m corpus.pace NAME ENGINE THREADS`.

A process of its own, as an engine may die. It prints a JSON document.
"""

from __future__ import annotations

import json
import sys
from functools import partial

from benchmarks.comparison import compare
from benchmarks.engines import run_of_engine, run_of_ours

import crosschip
from corpus.reading import inputs_of

_SECONDS = 0.3
_BLOCKS = 3
_SURE = 0.01
_PATIENCE_SECONDS = 5.0


def main(name: str, engine: str, count: str) -> None:
    """Time our run against the engine's, with the same inputs and threads."""
    from corpus.__main__ import entry_called

    entry = entry_called(name)
    inputs = inputs_of(entry)
    threads = int(count)
    ours = partial(run_of_ours, entry.file, engine, inputs, threads)
    direct = partial(run_of_engine, entry.file, engine, inputs, threads)
    try:
        ours()
    except crosschip.Error as error:
        print(json.dumps({"said": " ".join(str(error).split()[:30])}))
        return
    made = compare(
        ours, direct, seconds=_SECONDS, blocks=_BLOCKS, error=_SURE, patience=_PATIENCE_SECONDS
    )
    told = {
        "engine_ms": made.direct_ms,
        "ours_ms": made.ours_ms,
        "ratio": made.ratio.value,
        "error": made.ratio.error,
        "added_us": made.added_us.value,
        "others": made.others,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
