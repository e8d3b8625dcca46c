"""Operators made from OpDef definitions, with functions that say what they compute."""
