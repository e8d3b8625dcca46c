"""Range analysis: bounds of the values in a model."""
