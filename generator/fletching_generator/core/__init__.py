"""What the event core in C needs beside its tables: the bundle of it."""
