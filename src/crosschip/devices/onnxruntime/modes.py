"""ONNX Runtime's settings for options: the number of threads, and whether idle ones spin."""

from __future__ import annotations

import os
from collections.abc import Mapping

from crosschip.hal import Options, Performance

THREADS = "intra_op_num_threads"
SPINNING = "session.intra_op.allow_spinning"
STOPPING = "session.force_spinning_stop"


def modes() -> Mapping[Performance, Mapping[str, str]]:
    """Return the threads of a run (0 is one per core) and whether they spin, by mode."""
    processors = os.cpu_count() or 1
    return {
        Performance.LOW: {THREADS: "1", SPINNING: "0"},
        Performance.MEDIUM: {THREADS: str(max(1, processors // 2)), SPINNING: "0"},
        Performance.HIGH: {THREADS: "0", SPINNING: "1"},
        Performance.EXTREME: {THREADS: str(processors), SPINNING: "1"},
    }


def settings(options: Options, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return all settings; options and properties take precedence over the performance mode.

    Concurrent runs have at most their share of the cores. If programs of other devices run in
    between, threads stop spinning at the end of a run.
    """
    result = {THREADS: "0", SPINNING: "1", **modes().get(options.performance, {})}
    each = options.threads_each
    if each is not None and (each == options.threads or not 0 < int(result[THREADS]) < each):
        result[THREADS] = str(each)
    if options.alternates:
        result[STOPPING] = "1"
    if "spinning" in properties:
        result[SPINNING] = str(int(properties["spinning"] != "0"))
    return result
