"""Precision chosen by measurement: the fastest way to compute a model within a stated error.

- `tuning`: the search as users call it, and what it chose.
- `search`: tries `variants` on `samples`, in parts of a model that `groups` divides.
- `quantized_forms`: the forms of a model with weights of few bits: `int8` makes the static form,
  `low_bits` the others.
- `picture`: error against speed, drawn.
"""
