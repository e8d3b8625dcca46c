"""Computations that several operators share, on arrays or as simpler operators."""
