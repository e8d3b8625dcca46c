"""Operators defined by OpDef documents and implemented by classes."""
