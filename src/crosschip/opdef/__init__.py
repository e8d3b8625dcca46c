"""Definitions of operators written down as XML (OpDef): reading, checking, writing, comparing."""
