"""The ranges of the values in a model, as far as they follow from what makes them."""
