"""Schemas of files in the FlatBuffers format."""
