"""Computations that several operators share, in NumPy or built from simpler operators."""
