"""Seeing where the time of a run goes.

- `running`: runs a compiled model so that everything that it does is timed.
- `spans`: what was timed, each in what is with_program it.
- `profile`: sums up runs, as tables and as a document.
- `trace`: writes them as a file that Perfetto and Chrome open.
"""
