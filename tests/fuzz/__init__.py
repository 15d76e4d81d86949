"""Parsers of bytes under bytes that nobody meant: every input is read, or refused in one sentence."""
