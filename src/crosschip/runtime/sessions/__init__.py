"""Runs one after the other, with state that stays on the devices between them."""
