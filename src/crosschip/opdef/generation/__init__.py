"""Project generator for packages of operators, used by `crosschip opdef generate`.

A project has a stub for each operator, and tests that fail until the stub is implemented.
Generating it again from other definitions preserves edited files.
"""
