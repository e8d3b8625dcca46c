"""The interfaces as C libraries: what existing programs link against.

A library is a thin border around an interface in Python. Its header is the one definition of what
it exports; `building` compiles it, and `border` connects each function with the Python face's.
"""
