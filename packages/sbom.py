"""The SBOM of a release, in CycloneDX.

It has each artifact with its hash, its requirements with their versions, and the code of other
projects in it. The requirements come from the artifacts themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from manifest import files, sha256
from requirements import APACHE, Requirement, contained, license_of, requirements

NAME = "sbom.cdx.json"
URL = "https://github.com/fletching/fletching"


def write_sbom(folder: Path, version: str, seconds: int) -> Path:
    """Writes sbom.cdx.json, and returns its path."""
    path = folder / NAME
    text = json.dumps(bill(folder, version, seconds), indent=2)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def bill(folder: Path, version: str, seconds: int) -> dict[str, Any]:
    """The document for the artifacts in a folder."""
    paths = [path for path in files(folder) if shipped(path)]
    required = {path: [*requirements(folder / path)] for path in paths}
    every = sorted({one for each in required.values() for one in each})
    product = {"type": "library", "bom-ref": "fletching", "name": "fletching"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'{URL}/{version}/{seconds}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).isoformat(),
            "component": {**product, "version": version, "licenses": [{"expression": APACHE}]},
        },
        "components": [
            *(artifact(folder, path, version) for path in paths),
            *map(component, every),
        ],
        "dependencies": [
            depends("fletching", paths),
            *(depends(path, map(reference, found)) for path, found in required.items()),
            *(depends(reference(one), []) for one in every),
        ],
    }


def shipped(path: str) -> bool:
    """Whether a file is an artifact and not a checksum, signature or list."""
    endings = (".sha1", ".md5", ".sha256", ".sha512", ".asc", ".info", ".json", "/list", "SUMS")
    return not path.endswith(endings)


def artifact(folder: Path, path: str, version: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": "file",
        "bom-ref": path,
        "name": path,
        "version": version,
        "hashes": [{"alg": "SHA-256", "content": sha256(folder / path)}],
        "licenses": [{"expression": license_of(folder / path)}],
    }
    inside = [
        {"type": "library", "bom-ref": f"{path}:{name}", "name": name}
        for name in contained(folder / path)
    ]
    return {**made, "components": inside} if inside else made


def component(one: Requirement) -> dict[str, Any]:
    """A required package. No version, because users may get any that is accepted."""
    made: dict[str, Any] = {"type": "library", "bom-ref": reference(one), "name": one.name}
    if one.group:
        made["group"] = one.group
    made["purl"] = one.purl
    if one.versions:
        made["properties"] = [{"name": "fletching:versions", "value": one.versions}]
    return made


def reference(one: Requirement) -> str:
    return f"{one.purl}?{one.versions}"


def depends(user: str, used: Iterable[str]) -> dict[str, Any]:
    return {"ref": user, "dependsOn": sorted({*used})}
