"""Placement: querying devices, choosing among them, and cutting a model into segments."""
