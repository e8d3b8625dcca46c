"""The error of results, and how much of it rounding explains.

`crosschip bench`, `tune` and `bisect` measure errors by it, and the conformance kit takes what a
rounding is from here.

- `error`: the measure, and its unit in words.
- `rounding`: the difference of an output that rounding explains, from what its operation read.
- `spacings`: for operators that go through numbers near 1, how many spacings of these that is.
"""
