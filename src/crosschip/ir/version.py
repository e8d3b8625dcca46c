"""The version of crosschip; packaging reads it from here."""

VERSION = "0.3.0"
