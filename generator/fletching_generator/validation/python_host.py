"""Plays an object or a function of Python: run by fletching-validate --host, in the interpreter of
the library under test.

Only the standard library and libfletching_validate are needed. The methods of the object become
plain C functions, which the conformance suite plays in the roles of fletching/roles.h; the cases
`capsule-*` check the capsules themselves. Each case evaluates the expression again.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
from ctypes import CFUNCTYPE, c_int, c_void_p
from typing import Any

from .python_capsules import (
    DELETER,
    METHODS,
    RETURNS,
    SCHEMA,
    TENSOR,
    USED,
    FindingError,
    Hook,
    address_of,
    checked_capsules,
    destructor_of,
    name_of,
    rename,
    words_at,
)
from .python_consumers import (
    play_arrow_consumer,
    play_tensor_consumer,
    requests_legacy_tensor,
)
from .python_cuda_array import check_dictionary
from .python_suite import Host, evaluate

NO_SUBJECT = 3
TARGET = "FLETCHING_VALIDATE_TARGET"


# --- Producers ---


def exported(host: Any, method: Any, **keywords: Any) -> Any:
    """Evaluates the expression and calls the method."""
    value = evaluate(host.name)
    host.call(method)
    returned = getattr(value, method)(**keywords)
    host.call(f"{method} returned {type(returned).__name__}")
    return returned


def play_arrow_producer(host: Any, role: Any) -> None:
    method, kinds = METHODS[role]
    rule = RETURNS[role]

    def produce(*outs: Any) -> int:
        """Moves the structs out of the capsules, and drops the capsules."""
        try:
            returned = exported(host, method)
            addresses = checked_capsules(method, kinds, returned, rule)
        except BaseException as error:
            return int(host.raised(method, error, "producer"))
        for kind, address, out in zip(kinds, addresses, outs, strict=True):
            ctypes.memmove(out, address, kind.size)
            words_at(address, kind.words)[kind.release] = 0
        return 0

    def names() -> None:
        checked_capsules(method, kinds, exported(host, method), rule)

    def unread() -> None:
        """Hooks each release callback, then drops the capsules."""
        returned = exported(host, method)
        addresses = checked_capsules(method, kinds, returned, rule)
        hooks = [
            Hook(words_at(a, k.words), k.release) for a, k in zip(addresses, kinds, strict=True)
        ]
        del returned
        gc.collect()
        for kind, hook in zip(kinds, hooks, strict=True):
            if hook.calls != 1:
                text = f"the capsule {kind.name.decode()} was dropped unread"
                got = f"expected one call of release, got {hook.calls}"
                raise FindingError("capsule.destructor-releases", f"{text}: {got}")

    def requested() -> None:
        """Requests the schema that the object has."""
        schema = getattr(evaluate(host.name), "__arrow_c_schema__", None)
        capsule = schema() if schema else exported(host, "__arrow_c_array__")[0]
        try:
            returned = exported(host, method, requested_schema=capsule)
        except NotImplementedError as error:
            text = f"{method}: expected data in its own schema, got {error!r}"
            rule_of_request = "arrow-methods.requested-schema-tried"
            raise FindingError(rule_of_request, text, "warning") from None
        checked_capsules(method, kinds, returned, rule)

    host.play(f"{role}-producer", "capsule-names", names)
    host.play(f"{role}-producer", "capsule-unread", unread)
    if role == "array" or hasattr(evaluate(host.name), "__arrow_c_schema__"):
        host.play(f"{role}-producer", "capsule-requested-schema", requested)
    if role.startswith("device"):
        play_keywords(host, role, method)
    kind = CFUNCTYPE(c_int, *[c_void_p] * len(kinds))
    host.play_role(f"{role}-producer", kind(produce))


def play_keywords(host: Any, role: Any, method: Any) -> None:
    def none() -> None:
        try:
            exported(host, method, fletching_unknown=None)
        except Exception as error:
            text = f"{method}(fletching_unknown=None): expected capsules, got {error!r}"
            raise FindingError("arrow-device-methods.keywords-none", text, "warning") from None

    def refused() -> None:
        try:
            exported(host, method, fletching_unknown=1)
        except NotImplementedError:
            return
        except Exception as error:
            got = repr(error)
        else:
            got = "capsules"
        text = f"{method}(fletching_unknown=1): expected NotImplementedError, got {got}"
        raise FindingError("arrow-device-methods.keywords-refused", text)

    host.play(f"{role}-producer", "capsule-keywords-none", none)
    host.play(f"{role}-producer", "capsule-keywords-refused", refused)


def play_schema(host: Any) -> None:
    def names() -> None:
        returned = exported(host, "__arrow_c_schema__")
        rule = "arrow-methods.schema-returns"
        checked_capsules("__arrow_c_schema__", (SCHEMA,), returned, rule)

    def unread() -> None:
        returned = exported(host, "__arrow_c_schema__")
        hook = Hook(words_at(address_of(returned, SCHEMA.name), SCHEMA.words), SCHEMA.release)
        del returned
        gc.collect()
        if hook.calls != 1:
            text = f"dropped unread: expected one call of release, got {hook.calls}"
            raise FindingError("capsule.destructor-releases", text)

    host.play("schema-producer", "capsule-names", names)
    host.play("schema-producer", "capsule-unread", unread)


def tensor_capsule(host: Any) -> Any:
    """Requests version 1, which producers from before 1.0 do not know."""
    try:
        return exported(host, "__dlpack__", max_version=(1, 3))
    except TypeError:
        return exported(host, "__dlpack__")


def checked_tensor(host: Any) -> Any:
    """The array API asks for BufferError from data that DLPack cannot hold."""
    try:
        return tensor_capsule(host)
    except BufferError as error:
        raise FindingError("check.refuses-valid", f"__dlpack__: {error!r}", "note") from None
    except Exception as error:
        text = f"__dlpack__: expected a capsule or BufferError, got {error!r}"
        raise FindingError("check.exception", text, "warning") from None


def tensor_address(capsule: Any) -> Any:
    name = name_of(capsule)
    if name not in DELETER:
        text = f"__dlpack__: expected a capsule named {TENSOR!r}, got {name!r}"
        raise FindingError("dlpack-capsule.name", text)
    return name, address_of(capsule, name)


def play_tensor(host: Any) -> None:
    def names() -> None:
        tensor_address(checked_tensor(host))

    def unread() -> None:
        capsule = checked_tensor(host)
        name, address = tensor_address(capsule)
        words = words_at(address, DELETER[name] + 1)
        if not words[DELETER[name]]:
            return
        hook = Hook(words, DELETER[name])
        # A destructor may call its function directly, not through the struct, as XLA's does.
        expected = (0, 1) if destructor_of(capsule) else (1,)
        del capsule
        gc.collect()
        if hook.calls not in expected:
            text = f"dropped unread: expected one call of the deleter, got {hook.calls}"
            raise FindingError("dlpack-capsule.destructor", text)

    def produce(out: Any) -> int:
        try:
            capsule = tensor_capsule(host)
            name, address = tensor_address(capsule)
        except BaseException as error:
            return int(host.raised("__dlpack__", error, "producer"))
        rename(capsule, USED[name])
        words_at(out, 1)[0] = address
        return 0

    host.play("tensor-producer", "capsule-names", names)
    host.play("tensor-producer", "capsule-unread", unread)
    try:
        name = name_of(tensor_capsule(host))
    except BaseException:
        return  # a case above has reported it
    if name == TENSOR:
        host.play_role("tensor-producer", CFUNCTYPE(c_int, c_void_p)(produce))


def play_cuda_array(host: Any) -> None:
    host.play("cuda-array-producer", "dictionary", lambda: check_dictionary(evaluate(host.name)))


def play_producer(host: Any) -> None:
    value = evaluate(host.name)
    has = [role for role, (method, _) in METHODS.items() if hasattr(value, method)]
    others = {
        "__arrow_c_schema__": play_schema,
        "__dlpack__": play_tensor,
        "__cuda_array_interface__": play_cuda_array,
    }
    found = [play for method, play in others.items() if hasattr(value, method)]
    if not has and not found:
        known = ", ".join([*(method for method, _ in METHODS.values()), *others])
        host.write(error=f"{host.name}: no protocol: expected one of {known}")
        return
    del value
    for role in has:
        play_arrow_producer(host, role)
    for play in found:
        play(host)


def main(index: Any, case: Any, skipped: Any) -> int:
    if index > 0:
        return NO_SUBJECT
    target = json.loads(os.environ[TARGET])
    sys.path.insert(0, os.getcwd())
    host = Host(target, case, skipped)
    host.write(subject=host.name)
    try:
        value = evaluate(host.name)
    except BaseException as error:
        host.write(error=f"{host.name}: cannot evaluate: {type(error).__name__}: {error}")
        return 2
    del value
    if target["consumes"] == "legacy-tensor":
        play_tensor_consumer(host, is_legacy=True)
    elif target["consumes"] == "tensor":
        play_tensor_consumer(host, requests_legacy_tensor(host))
    elif target["consumes"]:
        play_arrow_consumer(host, target["consumes"])
    else:
        play_producer(host)
    return 0


def run() -> None:
    """Does not return."""
    code = main(int(sys.argv[1]), sys.argv[3], int(sys.argv[4]))
    os._exit(code)  # the interpreter's shutdown is not part of a case
