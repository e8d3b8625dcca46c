"""Compiled models as files: what is written, and how it becomes a compiled model again."""
