"""The error of results, and the part of it that rounding explains.

`crosschip bench`, `compare`, `tune`, `bisect` and the conformance kit measure errors with it.

- `error`: the error measure, and its unit in words.
- `rounding`: the difference of an output that rounding explains, from its operation's operands.
- `spacings`: that difference for operators with intermediates near 1, in spacings at 1.
"""
