"""The Python sides of NNRt's libraries: C's arguments put into those of the Python face."""
