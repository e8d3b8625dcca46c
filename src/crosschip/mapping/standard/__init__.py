"""Mappings of the standard operators to other systems, one module for each family."""
