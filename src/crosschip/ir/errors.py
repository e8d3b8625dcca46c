"""The one hierarchy of errors: whatever crosschip refuses, it refuses with a subclass of `Error`.

A message says what was wrong, where (file, operator, slot) and what to do about it.
"""


class Error(Exception):
    """Base of every exception that crosschip raises on purpose."""


class ModelError(Error):
    """A model breaks a rule of the intermediate representation or of an operator."""


class ElementTypeError(ModelError):
    """An operator does not take operands of an element type."""


class ModelFileError(Error):
    """A model file is missing, damaged, or not in a format that an importer knows."""


class UnsupportedError(Error):
    """A model is sound but uses what an importer cannot express or no given device can run."""


class BudgetError(Error):
    """Loading or compiling a model takes more than its budget allows; see `Budget`."""


class InputError(Error):
    """A name, shape, element type, layout or option that the caller passed in does not fit."""


class DeviceError(Error):
    """A device is unknown, failed to load, or failed while compiling or running."""


class DeadlineError(Error, TimeoutError):
    """A request was not answered before its deadline."""


class QueueFullError(Error):
    """A request was not taken on, because as many wait already as may."""


class CacheError(Error):
    """The compilation cache cannot be used as asked."""
