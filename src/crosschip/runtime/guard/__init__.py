"""Guards around foreign code: all calls of devices and their programs.

An exception from a device becomes a `DeviceError` that begins with the device's name, and results
are checked. Four exceptions pass: `KeyboardInterrupt`; exceptions that a signal handler or another
thread raises during a call, like a time limit; `ModelFileError`, since unreadable weights are not
the device's failure; and `Abandoned`, which only the runtime's programs raise.
"""
