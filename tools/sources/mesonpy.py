"""Replaces the build backend of nanoarrow's source package, which pip queries for a name and a
version before it saves the package. It builds no code."""

from __future__ import annotations

from pathlib import Path


def get_requires_for_build_wheel(settings: object = None) -> list[str]:
    return []


def prepare_metadata_for_build_wheel(folder: str, settings: object = None) -> str:
    fields = dict(
        line.split(": ", 1)
        for line in Path("PKG-INFO").read_text(encoding="utf-8").splitlines()
        if line.startswith(("Metadata-Version: ", "Name: ", "Version: "))
    )
    info = f"{fields['Name']}-{fields['Version']}.dist-info"
    (Path(folder) / info).mkdir()
    text = "".join(f"{name}: {value}\n" for name, value in fields.items())
    (Path(folder) / info / "METADATA").write_text(text, encoding="utf-8")
    return info
