"""The bundle of the event core in C."""
