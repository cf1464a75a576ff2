"""Fletching's generator: reads the spec and writes every language's declarations from it."""
