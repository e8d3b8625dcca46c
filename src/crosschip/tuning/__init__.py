"""Choice of precision by measurement: the fastest variant of a model within an error bound.

- `tuning`: the public function `tune`, and its result.
- `search`: tries `variants` on `samples`, for `groups` of operations.
- `quantized_forms`: the forms of a model with low-bit weights: `int8` creates the static form,
  `low_bits` the others.
- `picture`: draws error against speed.
"""
