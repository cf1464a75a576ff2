"""Stands in for the build backend of a source package.

pip asks the backend for name and version before it keeps a download. This one repeats what the
package's own PKG-INFO says, so that nothing is built and no build tool is needed.
"""

from __future__ import annotations

from email import message_from_bytes
from pathlib import Path


def prepare_metadata_for_build_wheel(directory: str, _settings: object = None) -> str:
    content = Path("PKG-INFO").read_bytes()
    info = message_from_bytes(content)
    folder = Path(directory) / f"{info['Name']}-{info['Version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_bytes(content)
    return folder.name
