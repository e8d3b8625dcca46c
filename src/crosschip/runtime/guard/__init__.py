"""The one guard around foreign code: every call into a device or its programs goes through here.

Whatever a device raises becomes a `DeviceError` that begins with the device's name, and whatever it
returns is checked before anybody relies on it. Four pass: `KeyboardInterrupt`, since it is the
user's, what a signal handler or another thread raises in the middle of a call (a time limit, for
example), `ModelFileError`, since weights that cannot be read any more are no device's failure, and
`Abandoned`, which only programs of the runtime's own raise.
"""
