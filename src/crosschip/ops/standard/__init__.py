"""The standard operators: a file a family, a class an operator."""
