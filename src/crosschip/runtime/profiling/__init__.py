"""Profiling of runs.

- `timed_runs`: runs a compiled model and times all of its parts.
- `spans`: the nested time spans of a run.
- `profile`: the mean times of runs, as tables and as a document.
- `trace`: the runs in a file format that Perfetto and Chrome open.
"""
