"""Fletching's generator: reads the spec and generates the declarations of every language."""
