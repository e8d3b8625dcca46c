"""The version of crosschip; what packages it reads it here."""

VERSION = "0.3.0"
