"""The cache of compiled programs: a folder, the file of an entry, its key, the user's secret."""
