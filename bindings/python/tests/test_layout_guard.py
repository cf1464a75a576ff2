"""The check that runs on import of fletching.abi."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fletching import abi

SOURCE = Path(abi.__file__).read_text(encoding="utf-8")


def import_text(source: str) -> ModuleType:
    """Runs the source of fletching.abi as a module with another name."""
    module = ModuleType("altered_abi")
    module.__package__ = abi.__package__
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, "altered_abi.py", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    return module


def altered(pattern: str, replacement: str) -> str:
    text, count = re.subn(pattern, replacement, SOURCE, count=1, flags=re.MULTILINE)
    assert count == 1, f"{pattern} does not occur in abi.py"
    return text


def test_import_accepts_generated_module() -> None:
    import_text(SOURCE)


def test_import_rejects_wrong_type() -> None:
    field = r'\("device_id", ctypes.c_int64\)'
    with pytest.raises(
        ImportError, match=r"ArrowDeviceArray.device_id has offset and size \(80, 4"
    ):
        import_text(altered(field, '("device_id", ctypes.c_int32)'))


def test_import_rejects_wrong_offset() -> None:
    fields = r'( +\("null_count", .*\),\n)( +\("offset", .*\),\n)'
    with pytest.raises(ImportError, match=r"ArrowArray.null_count has offset and size \(16, 8\)"):
        import_text(altered(fields, r"\2\1"))


def test_import_rejects_wrong_size() -> None:
    last = r'^( +\("reserved", .*\),\n)'
    with pytest.raises(ImportError, match=r"ArrowDeviceArray has size and alignment \(136, 8\)"):
        import_text(altered(last, r'\1    ("extra", ctypes.c_void_p),\n'))


@pytest.mark.parametrize(
    ("pointer_size", "int64_offset", "column"), [(8, 8, 0), (4, 8, 1), (4, 4, 2)]
)
def test_import_uses_layout_class_of_interpreter(
    monkeypatch: pytest.MonkeyPatch, pointer_size: int, int64_offset: int, column: int
) -> None:
    class Probe(ctypes.Structure):
        _pack_ = int64_offset
        _fields_ = (("before", ctypes.c_char), ("value", ctypes.c_int64))

    monkeypatch.setattr(ctypes, "sizeof", lambda _: pointer_size)
    monkeypatch.setattr(abi, "_Int64Probe", Probe)
    assert abi._target() == column
