"""The packages whose headers are compared with the spec, as data for fetch.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    name: str  # "pyarrow", or the path of a Go module
    version: str  # "13.0.0"
    kind: str  # "wheel", "sdist", "module"
    hash: str  # hash of the whole package, in the format of pip or Go
    headers: str  # the header folder inside the package

    @property
    def folder(self) -> str:
        """The folder below build/published/, such as `pyarrow-13.0.0`."""
        name = self.name.removeprefix("github.com/apache/").partition("/")[0]
        return f"{name}-{self.version}"


_PYARROW_HEADERS = "pyarrow/include/arrow/c/"

PACKAGES = (
    Package(
        "pyarrow",
        "13.0.0",
        "wheel",
        "sha256:ab1268db81aeb241200e321e220e7cd769762f386f92f61b898352dd27e402ce",
        _PYARROW_HEADERS,
    ),
    Package(
        "pyarrow",
        "17.0.0",
        "wheel",
        "sha256:a27532c38f3de9eb3e90ecab63dfda948a8ca859a66e3a47f5f42d1e403c4d03",
        _PYARROW_HEADERS,
    ),
    Package(
        "pyarrow",
        "21.0.0",
        "wheel",
        "sha256:555ca6935b2cbca2c0e932bedd853e9bc523098c39636de9ad4693b5b1df86d6",
        _PYARROW_HEADERS,
    ),
    Package(
        "nanoarrow",
        "0.9.0",
        "sdist",
        "sha256:1ce15bbed8532839347faa78824c5dbd3769bff60661003e34c6fba5dd881bd3",
        "nanoarrow-0.9.0/subprojects/arrow-nanoarrow/src/",
    ),
    Package(
        "github.com/apache/arrow-go/v18",
        "v18.8.0",
        "module",
        "h1:BLOzbPv7bxMPgXPacAg6HQjnxupYsZzC4tf+FkqPU/M=",
        "github.com/apache/arrow-go/v18@v18.8.0/arrow/cdata/",
    ),
)
