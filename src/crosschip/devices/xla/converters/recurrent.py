"""Recurrent networks."""

from __future__ import annotations

from crosschip.devices.xla.converters.table import converts, decomposed
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN

converts(GRU, LSTM, RNN)(decomposed)
