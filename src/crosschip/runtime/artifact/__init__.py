"""The one persisted form: cache entries, compiled models in files and under tokens, plans."""
