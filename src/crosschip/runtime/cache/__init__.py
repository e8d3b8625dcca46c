"""The cache of compiled programs: stores, keys of entries, and the user's secret."""
