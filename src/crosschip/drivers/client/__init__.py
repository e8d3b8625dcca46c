"""The side of those who use a driver in another process."""
