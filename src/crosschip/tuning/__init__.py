"""Precision chosen by measurement: the fastest way to compute a model within a stated error.

`tuning` is the search as users call it; `variants` are the ways that it tries, `samples` what it
runs them on, `error` how far a result is off, `groups` which operations are tried together, `int8`
makes quantized models, `report` says and draws what was found.
"""
