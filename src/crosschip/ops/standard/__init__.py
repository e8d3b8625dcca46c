"""The standard operators: one module per family, one class per operator."""
