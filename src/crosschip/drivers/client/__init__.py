"""The client of a driver in another process."""
