"""ONNX Runtime's own settings for options: threads, and how they wait for work."""

from __future__ import annotations

import os
from collections.abc import Mapping

from crosschip.hal import Options, Performance

THREADS = "intra_op_num_threads"
SPINNING = "session.intra_op.allow_spinning"


def modes() -> Mapping[Performance, Mapping[str, str]]:
    """The threads of a run (0 is one for each core), and whether idle ones wait in a loop."""
    processors = os.cpu_count() or 1
    return {
        Performance.LOW: {THREADS: "1", SPINNING: "0"},
        Performance.MEDIUM: {THREADS: str(max(1, processors // 2)), SPINNING: "0"},
        Performance.HIGH: {THREADS: "0", SPINNING: "1"},
        Performance.EXTREME: {THREADS: str(processors), SPINNING: "1"},
    }


def settings(options: Options, properties: Mapping[str, str]) -> Mapping[str, str]:
    """All settings; what the caller has said of one thing comes before the performance mode.

    Of several runs at once, none has more threads than its share of the cores.
    """
    result = {THREADS: "0", SPINNING: "1", **modes().get(options.performance, {})}
    each = options.threads_each
    if each is not None and (each == options.threads or not 0 < int(result[THREADS]) < each):
        result[THREADS] = str(each)
    if "spinning" in properties:
        result[SPINNING] = str(int(properties["spinning"] != "0"))
    return result
