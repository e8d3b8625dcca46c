"""C libraries with the interfaces, for existing programs to link against.

A library forwards its functions to the interface's Python implementation. Its header defines what
it exports; `building` compiles it, and `bindings` connects each function to Python.
"""
