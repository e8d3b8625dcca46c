"""Devices in separate processes ("drivers").

A service runs a device in its own process and serves a Unix socket; `RemoteDevice` is its client, a
device like any other. Tensors, constants and saved programs lie in shared memory; only its
descriptors are sent. If a driver's process crashes, a new one replaces it; the caller sees only the
counter in a report.
"""
