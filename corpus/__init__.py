"""Models as people have them: out of packages, and made with the usual tools; tried everywhere."""
