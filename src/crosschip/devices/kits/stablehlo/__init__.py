"""Models of standard operators as functions that JAX traces to StableHLO, for its compilers.

A converter is a JAX function an operator. Large constants are arguments of the function, so that
programs for several sets of input shapes share them. What loads saved programs (`saved`, `weights`,
`padded`) needs neither JAX nor converters.
"""
