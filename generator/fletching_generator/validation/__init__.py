"""The table of the rules that the validation layer reports."""
