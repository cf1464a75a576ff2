"""Calls a function of Python with objects whose capsules own the structs of the suite."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Sequence
from ctypes import CFUNCTYPE, c_int, c_void_p
from typing import Any

from .python_capsules import (
    LEGACY_TENSOR,
    METHODS,
    TENSOR,
    Owned,
    capsule_of,
    tensor_capsule_of,
)
from .python_suite import Host, evaluate

CPU = (1, 0)  # the DLPack device


class Given:
    """An object with one Arrow method, which returns its capsules once."""

    def __init__(self, capsules: list[Any], is_device: bool) -> None:
        self._capsules, self._is_device = capsules, is_device

    def export(self, requested_schema: object = None, **keywords: object) -> Any:
        if self._is_device and any(value is not None for value in keywords.values()):
            raise NotImplementedError("expected no keyword with a value")
        if not self._capsules:
            raise ValueError("expected one call, got two")
        return self._capsules.pop()


class GivenTensor:
    """A tensor on the CPU, whose capsule it returns once. One of version 1 has to be requested."""

    def __init__(self, capsules: list[Any], is_legacy: bool) -> None:
        self._capsules, self._is_legacy = capsules, is_legacy
        self.requests: set[bool] = set()  # of version 1

    def __dlpack__(self, *, max_version: Any = None, **_: object) -> Any:
        is_request = max_version is not None and max_version[0] >= 1
        self.requests.add(is_request)
        if not is_request and not self._is_legacy:
            raise BufferError("expected max_version (1, 0) or later")
        if not self._capsules:
            raise ValueError("expected one call, got two")
        return self._capsules.pop()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU


def _consume(host: Host, given: Any, capsules: list[Any], owned: Sequence[Owned]) -> int:
    """Calls the function, drops its result, and releases the remaining structs."""
    try:
        evaluate(host.name)(given)
        code = 0
    except BaseException as error:
        code = host.raised("", error, "consumer")
    capsules.clear()
    gc.collect()
    for each in owned:
        each.end()
    return code


def play_arrow_consumer(host: Host, kind_name: str) -> None:
    method, kinds = METHODS[kind_name]
    # Consumers look for the method on the type.
    given_type: Any = type("Given", (Given,), {method: Given.export})

    def consume(*structs: int) -> int:
        owned = [capsule_of(kind, struct) for kind, struct in zip(kinds, structs, strict=True)]
        returned = tuple(each.capsule for each in owned)
        capsules: list[Any] = [returned if len(returned) > 1 else returned[0]]
        del returned
        given = given_type(capsules, kind_name.startswith("device"))
        return _consume(host, given, capsules, owned)

    kind = CFUNCTYPE(c_int, *[c_void_p] * len(kinds))
    host.play_role(f"{kind_name}-consumer", kind(consume))


def requests_legacy_tensor(host: Host) -> bool:
    """Calls the function with a tensor that it does not get."""
    given = GivenTensor([], is_legacy=False)
    with contextlib.suppress(BaseException):
        evaluate(host.name)(given)
    return given.requests == {False}


def play_tensor_consumer(host: Host, is_legacy: bool) -> None:
    name = LEGACY_TENSOR if is_legacy else TENSOR

    def consume(tensor: int) -> int:
        owned = tensor_capsule_of(name, tensor)
        capsules = [owned.capsule]
        return _consume(host, GivenTensor(capsules, is_legacy), capsules, [owned])

    role = "legacy-tensor-consumer" if is_legacy else "tensor-consumer"
    host.play_role(role, CFUNCTYPE(c_int, c_void_p)(consume))
