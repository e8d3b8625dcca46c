"""Names and codes of the standard operators in other systems, a file for each family."""
