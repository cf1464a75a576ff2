"""The vendors' runtimes, spec/runtimes.yaml, as typed, frozen data, and the reader of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..errors import SpecError
from ..reading.documents import Document, KeyPath
from ..reading.types import (
    Argument,
    Callback,
    Constant,
    Scalar,
    StructType,
    Type,
    Typedef,
    TypeExpressionError,
    parse_type,
)

# The requirements of an event operation. Only the first three have functions to call.
By = Literal["call", "polling", "command_buffer", "waiter", "none"]

# The integer types of a vendor and their width: a number of bytes, or a pointer's.
INTEGERS = {
    **{f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)},
    "intptr": None,
    "uintptr": None,
}

_PASSED_AS = {"handle": "pointer", "handle64": "uint64", "struct": "void", "callback": "pointer"}


@dataclass(frozen=True)
class VendorType(Typedef):
    """A type of a runtime; `scalar` is the type in which it is passed.

    A `handle` is a pointer; a `handle64` is a pointer if pointers have 64 bits, otherwise an
    integer. A `struct`, which is also the kind of `void`, is used only behind a pointer.
    """

    kind: Literal["handle", "handle64", "integer", "enum", "struct", "callback"]
    doc: str  # "An event; the same as cudaEvent_t."
    fields: tuple[Argument, ...]  # of a struct that a caller must fill in; otherwise empty
    callback: Callback | None
    same_as: str | None  # "cudaEvent_t": its name in another API of the vendor


@dataclass(frozen=True)
class Header:
    """The vendor's header with which the table is compared."""

    include: str  # "hip/hip_runtime_api.h"
    define: tuple[str, ...]  # ("__HIP_PLATFORM_AMD__",)
    per_thread: str | None  # "CUDA_API_PER_THREAD_DEFAULT_STREAM": selects Function.per_thread


@dataclass(frozen=True)
class Convention:
    macro: str  # "CUDAAPI": its name in the header
    windows_x86: Literal["stdcall"]  # on 32-bit Windows; other targets have only one convention


@dataclass(frozen=True)
class Libraries:
    """File names, in the order of the attempts."""

    linux: tuple[str, ...]  # ("libcuda.so.1", "libcuda.so")
    windows: tuple[str, ...]  # ("nvcuda.dll",)
    macos: tuple[str, ...]  # (): the note says why
    note: str | None


@dataclass(frozen=True)
class Query:
    """The query of an event, and the meaning of its result. Any other value is an error."""

    function: Function  # cuEventQuery
    value: str  # "result", or the argument that receives the value
    selector: Constant | None  # CL_EVENT_COMMAND_EXECUTION_STATUS
    type: VendorType  # CUresult: the type of the value
    done: tuple[Constant, ...]  # (CUDA_SUCCESS,)
    pending: tuple[Constant, ...]  # (CUDA_ERROR_NOT_READY,)
    pending_above: Constant | None  # CL_COMPLETE: greater values are also pending
    lost: tuple[Constant, ...]  # errors after which no work of the context can still run
    lost_below: Constant | None  # CL_COMPLETE: smaller values are also lost


@dataclass(frozen=True)
class Operation:
    name: str  # "host_wait"
    by: By
    functions: tuple[Function, ...]  # (cuEventSynchronize,)
    note: str | None  # required unless it is by call


@dataclass(frozen=True)
class Function:
    name: str  # "cuCtxPushCurrent": in source code
    symbol: str  # "cuCtxPushCurrent_v2": in the library
    per_thread: str | None  # "cuEventRecord_ptsz": NULL is the default stream of the thread
    callers: tuple[str, ...]  # ("product", "producer"): the code that calls it
    optional: str | None  # "CUDA 11.7 and later": a library may lack it
    newer: str | None  # why the header from which the table was read does not declare it
    type: Callback  # the signature
    doc: str


@dataclass(frozen=True)
class Runtime:
    name: str  # "cuda"
    title: str  # "CUDA driver API"
    doc: str
    api: Literal["c", "cpp", "objective_c"]
    read_from: str | None  # "CUDA 13.5": the header from which the table was read
    header: Header | None
    convention: Convention | None
    libraries: Libraries
    handles: dict[str, str]  # {"event": "CUevent", "stream": "CUstream", ...}
    status: VendorType | None  # CUresult: the return type of functions without another one
    query: Query | None
    operations: tuple[Operation, ...]
    types: tuple[VendorType, ...]
    constants: tuple[Constant, ...]
    functions: tuple[Function, ...]

    def operation(self, name: str) -> Operation:
        return next(operation for operation in self.operations if operation.name == name)


def load_runtimes(document: Document) -> tuple[Runtime, ...]:
    """Returns all runtimes of the file, with names resolved. Raises SpecError."""
    entries = document.content["runtimes"]
    return tuple(_Reader(document, index, entry).read() for index, entry in enumerate(entries))


class _Reader:
    """Reads one runtime, whose entries may reference earlier entries."""

    def __init__(self, document: Document, index: int, entry: dict[str, Any]) -> None:
        self._document = document
        self._keys: list[str | int] = ["runtimes", index]
        self._entry = entry
        self._types: dict[str, Typedef | StructType] = {}
        self._constants: dict[str, Constant] = {}
        self._functions: dict[str, Function] = {}

    def read(self) -> Runtime:
        entry = self._entry
        types = tuple(self._vendor_type(*item) for item in enumerate(entry.get("types", [])))
        for number, constant in enumerate(entry.get("constants", [])):
            self._declare(self._constants, ["constants", number], self._constant(number, constant))
        for number, function in enumerate(entry.get("functions", [])):
            self._declare(self._functions, ["functions", number], self._function(number, function))
        header = entry.get("header")
        return Runtime(
            name=entry["name"],
            title=entry["title"],
            doc=entry["doc"],
            api=entry["api"],
            read_from=entry.get("read_from"),
            header=header
            and Header(header["include"], tuple(header["define"]), header.get("per_thread")),
            convention=Convention(**entry["convention"]) if "convention" in entry else None,
            libraries=_libraries(entry["libraries"]),
            handles=entry["handles"],
            status=self._status(),
            query=self._query(),
            operations=tuple(self._operation(*item) for item in entry["operations"].items()),
            types=types,
            constants=tuple(self._constants.values()),
            functions=tuple(self._functions.values()),
        )

    def _fail(self, keys: KeyPath, problem: str, hint: str) -> SpecError:
        return SpecError(self._document.mistake([*self._keys, *keys], problem, hint))

    def _declare(self, table: dict[str, Any], keys: list[str | int], item: Any) -> None:
        if item.name in table:
            raise self._fail([*keys, "name"], f"'{item.name}' is a duplicate", "remove one")
        table[item.name] = item

    def _find(self, table: dict[str, Any], name: str, keys: KeyPath, kind: str) -> Any:
        if name not in table:
            raise self._fail(keys, f"{kind} '{name}' is not declared", f"add it to '{kind}s'")
        return table[name]

    def _parse(self, text: str, keys: KeyPath) -> Type:
        try:
            return parse_type(text, self._types)
        except TypeExpressionError as error:
            raise self._fail(keys, str(error), error.hint) from None

    def _signature(self, text: str, keys: KeyPath) -> Callback:
        parsed = self._parse(text, keys)
        if not isinstance(parsed, Callback):
            raise self._fail(keys, f"'{text}' is not a function", "write callback(...) -> T")
        return parsed

    def _vendor_type(self, number: int, entry: dict[str, Any]) -> VendorType:
        keys: list[str | int] = ["types", number]
        kind, expression = entry["kind"], entry.get("type", "")
        if (kind in ("integer", "enum", "callback")) != bool(expression):
            hint = "integer, enum and callback have a type; the others have none"
            raise self._fail(keys, f"kind '{kind}' and 'type' do not fit", hint)
        if kind in ("integer", "enum") and expression not in INTEGERS:
            hint = f"use one of {', '.join(INTEGERS)}"
            raise self._fail([*keys, "type"], f"'{expression}' is not an integer", hint)
        if "fields" in entry and kind != "struct":
            raise self._fail([*keys, "fields"], "only a struct has fields", "remove them")
        found = VendorType(
            name=entry["name"],
            scalar=Scalar(_PASSED_AS.get(kind, expression)),
            kind=kind,
            doc=entry["doc"],
            fields=tuple(
                Argument(field["name"], self._parse(field["type"], [*keys, "fields", at, "type"]))
                for at, field in enumerate(entry.get("fields", []))
            ),
            callback=self._signature(expression, [*keys, "type"]) if kind == "callback" else None,
            same_as=entry.get("same_as"),
        )
        self._declare(self._types, keys, found)
        return found

    def _constant(self, number: int, entry: dict[str, Any]) -> Constant:
        keys: list[str | int] = ["constants", number, "type"]
        parsed = self._parse(entry["type"], keys)
        passed = parsed.scalar if isinstance(parsed, Typedef) else parsed
        if not isinstance(passed, Scalar) or passed.name not in (*INTEGERS, "pointer"):
            problem = f"'{entry['type']}' is neither an integer nor a handle"
            raise self._fail(keys, problem, "name one")
        return Constant(**entry)

    def _function(self, number: int, entry: dict[str, Any]) -> Function:
        return Function(
            name=entry["name"],
            symbol=entry.get("symbol", entry["name"]),
            per_thread=entry.get("per_thread"),
            callers=tuple(entry["callers"]),
            optional=entry.get("optional"),
            newer=entry.get("newer"),
            type=self._signature(entry["type"], ["functions", number, "type"]),
            doc=entry["doc"],
        )

    def _status(self) -> VendorType | None:
        name = self._entry.get("status")
        return name and self._find(self._types, name, ["status"], "type")

    def _query(self) -> Query | None:
        entry = self._entry.get("query")
        if entry is None:
            return None

        def constant(key: str, name: str | None) -> Any:
            return name and self._find(self._constants, name, ["query", key], "constant")

        function = self._find(self._functions, entry["function"], ["query", "function"], "function")
        return Query(
            function=function,
            value=entry["value"],
            selector=constant("selector", entry.get("selector")),
            type=self._find(self._types, entry["type"], ["query", "type"], "type")
            if "type" in entry
            else function.type.returns,
            done=tuple(constant("done", name) for name in entry["done"]),
            pending=tuple(constant("pending", name) for name in entry["pending"]),
            pending_above=constant("pending_above", entry.get("pending_above")),
            lost=tuple(constant("lost", name) for name in entry.get("lost", [])),
            lost_below=constant("lost_below", entry.get("lost_below")),
        )

    def _operation(self, name: str, entry: dict[str, Any]) -> Operation:
        functions = tuple(
            self._find(self._functions, function, ["operations", name, "functions"], "function")
            for function in entry.get("functions", [])
        )
        return Operation(name, entry["by"], functions, entry.get("note"))


def _libraries(entry: dict[str, Any]) -> Libraries:
    files = {system: tuple(entry[system]) for system in ("linux", "windows", "macos")}
    return Libraries(**files, note=entry.get("note"))
