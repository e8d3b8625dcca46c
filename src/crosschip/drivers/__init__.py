"""Drivers in processes of their own.

A service runs a device in its own process and answers on a Unix socket; `RemoteDevice` is a device
like any other that asks one. Tensors, constants and saved programs lie in memory that both share,
and only descriptors of it go through the socket. What a driver's fault takes along is its process,
which another one replaces; nothing of that is seen but a number in a report.
"""
