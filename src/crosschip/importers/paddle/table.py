"""The table of the functions that import operators, by the operators' names in Paddle 2."""

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.table import ImportTable

TABLE: ImportTable[Callable[[Context], None]] = ImportTable()
imports = TABLE.imports
