"""Validates an SBOM against CycloneDX's schema: `validate_sbom.py FILE`.

Runs in the environment of the group `publish`. Exit codes: 0 valid, 1 not valid.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    sys.exit(f"validate_sbom.py: {sys.argv[1]}: not valid CycloneDX: {wrong}" if wrong else 0)
