"""Packages of operators to begin with: what `crosschip opdef generate` writes.

A project has a stub for each operator, which says what to fill in, and tests that say what is not
written yet. Written again from other definitions, it keeps whatever has been edited.
"""
