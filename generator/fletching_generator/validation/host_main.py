"""Starts python_host.py in any interpreter, without other packages of this installation."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from fletching_generator.validation import python_host  # noqa: E402

sys.path[0] = ""  # the working folder
python_host.run()
