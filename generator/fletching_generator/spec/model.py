"""The spec as typed, frozen data: the layer between the YAML and the templates.

Templates and language modules use only these classes. Each field has one example in a comment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..async_stream.table import AsyncTable
from ..cuda_array_interface.dictionaries import DictionaryInterface
from ..reading.types import Callback, Constant, Type, Typedef
from ..runtimes.model import Runtime
from .errno import ErrorTable
from .tensor_types import TensorTypes

# --- Interfaces --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Enumerator:
    name: str  # "kDLInt"
    label: str  # "int": the printed name
    value: int  # 0
    doc: str  # "Signed integer."
    since: str | None = None  # "0.2": the DLPack version
    unreleased: bool = False  # True: only on DLPack's main branch; then `since` is None


@dataclass(frozen=True)
class TypedefDeclaration:
    type: Typedef  # Typedef("ArrowDeviceType", Scalar("int32"))
    open: bool  # True: unknown values are passed on
    doc: str  # "The kind of device on which the buffers were allocated."
    enumerators: tuple[Enumerator, ...] = ()  # not empty: an enum in C
    from_devices: bool = False  # True: the enumerators are the DLPack names of the devices
    unreleased: tuple[Enumerator, ...] = ()  # not yet part of the enum in C

    @property
    def known(self) -> tuple[Enumerator, ...]:
        """The released and the unreleased enumerators."""
        return self.enumerators + self.unreleased


@dataclass(frozen=True)
class Contract:
    """Who calls a callback, from where, how often, and its limits."""

    called_by: Literal["consumer", "producer"]
    thread: str  # "any, one call at a time"
    times: str  # "exactly once"
    inside: str  # "may block"
    nullable: tuple[str, ...]  # ("out",): the arguments that may be NULL
    returns: str  # "0, or an errno value"
    failure: Literal["errno", "NULL", "nothing", -1]  # "errno": how it reports a failure
    gil: bool = False  # True: the caller holds Python's GIL


@dataclass(frozen=True)
class Field:
    name: str  # "sync_event"
    type: Type  # Pointer(Scalar("void"), const=False)
    presence: Literal["mandatory", "optional"]
    set_by: Literal["producer", "consumer"]
    owned_by: Literal["producer", "consumer", "none"]
    valid: str  # "NULL, or what the event table says"
    doc: str  # "NULL when the data may be read at once."
    contract: Contract | None  # of a callback; None for data
    # "DLDataTypeCode": names the values of an integer that C does not declare with that type
    enumerated_by: str | None = None

    @property
    def is_callback(self) -> bool:
        return isinstance(self.type, Callback)


@dataclass(frozen=True)
class Struct:
    name: str  # "ArrowDeviceArray"
    section: str  # "The ArrowDeviceArray structure"
    doc: str  # "An array whose buffers are on a device."
    allocated_by: Literal["producer", "consumer"]
    filled_by: Literal["producer", "consumer"]
    fields: tuple[Field, ...]
    since: str | None = None  # "1.2": the DLPack version, if an earlier header lacks it
    typedef: bool = False  # True: C uses a typedef name, without "struct"
    function_table: bool = False  # True: the callbacks do not take a pointer to the struct first

    @property
    def callbacks(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.is_callback)


@dataclass(frozen=True)
class Interface:
    """One canonical guard and its contents."""

    id: str  # "c-device-data": the file name without its suffix
    guard: str  # "ARROW_C_DEVICE_DATA_INTERFACE"
    title: str  # "C device data interface"
    document: str  # "CDeviceDataInterface": the published text
    header: str  # "abi.h": the file of include/fletching/ that declares it
    requires: tuple[str, ...]  # ("c-data",)
    doc: str
    typedefs: tuple[TypedefDeclaration, ...]
    device_macros: bool  # True: it declares the Arrow macros of devices.yaml
    constants: tuple[Constant, ...]
    functions: tuple[Callback, ...]  # the named ones
    structs: tuple[Struct, ...]
    experimental: bool  # True: the published text says so


# --- Devices -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    # How sync_event points to the event; "none" if it is always NULL.
    pointer: Literal["none", "address_of_handle", "object", "producer_defined"]
    type: str | None  # "cudaEvent_t*": in the spelling of the published table
    note: str | None  # "currently_unknown": a key of Spec.notes


@dataclass(frozen=True)
class Buffers:
    """The meaning of `buffers[i]`. A view type's last buffer is in host memory on every device."""

    are: Literal[
        "host_address", "device_address", "shared_address", "handle", "producer_defined", "unknown"
    ]
    type: str | None  # "cl_mem": of a handle
    doc: str  # "The handle of a buffer, as DLPack says it."


@dataclass(frozen=True)
class Access:
    """The devices that can access the memory. Access between two devices may be one-way."""

    devices: tuple[str, ...]  # ("cpu", "cuda"): names of devices that do the work, not of memory
    note: str | None  # "From the devices of the buffer's cl_context."
    unknown: str | None  # why the devices are unknown; none are listed then


@dataclass(frozen=True)
class Handle:
    """An object that a consumer needs in addition to the struct."""

    name: str  # "cl_context"
    how: str  # "clGetEventInfo of the event": how to get it from the producer


@dataclass(frozen=True)
class Handles:
    needed: tuple[Handle, ...]
    unknown: str | None  # why the handles are unknown; none are listed then


@dataclass(frozen=True)
class Device:
    name: str  # "cuda_host": the printed name
    value: int  # 3
    doc: str  # "Host memory that CUDA has pinned."
    arrow: str | None  # "ARROW_DEVICE_CUDA_HOST"; None if only DLPack has it
    dlpack_only: str | None  # the reason why Arrow does not have it
    dlpack: str  # "kDLCUDAHost"
    since_arrow: str | None  # Arrow "13.0.0"
    since_dlpack: str | None  # "0.5"; None if it is unreleased
    unreleased: bool  # True: on DLPack's main branch and in no release
    device_id: str  # "CUDA device ordinal"
    buffers: Buffers
    accessible_from: Access
    handles: Handles
    runtime: str | None  # "cuda"
    event: Event
    title: str  # "CUDA pinned host memory"


@dataclass(frozen=True)
class Unassigned:
    value: int  # 5
    reason: str


@dataclass(frozen=True)
class Fork:
    """A fork of dlpack.h with additional devices."""

    name: str  # "MetaX's fork"
    devices: dict[str, int]  # {"kDLMACA": 19}


@dataclass(frozen=True)
class Note:
    id: str  # "producer_defined"
    text: str


# --- Errata and names --------------------------------------------------------------------------


@dataclass(frozen=True)
class Erratum:
    id: str  # "async-producer-release"
    about: str  # "ArrowAsyncProducer": a struct, Struct.field, typedef, guard or dictionary key
    says: tuple[tuple[str, str], ...]  # (("abi.h (pyarrow 26.0.0)", "no such callback"), ...)
    follow: str  # "abi.h (pyarrow 26.0.0)"
    why: str


@dataclass(frozen=True)
class Project:
    name: str  # "Fletching"
    version: str  # MAJOR.MINOR.PATCH
    license: str  # "Apache-2.0"
    description: str
    repository: str  # "github.com/fletching/fletching"
    interfaces: tuple[str, ...]  # ("c-data", "c-device-data", ...): order of the C header
    names: dict[str, str]  # {"cpp_namespace": "fletching", ...}


@dataclass(frozen=True)
class Declarations:
    """The contents of headers: enough to lay out structs and to check a header."""

    project: Project
    interfaces: tuple[Interface, ...]  # in the order of the C header
    devices: tuple[Device, ...]  # by value
    unreleased_devices: tuple[Device, ...]  # by value; reserved numbers, without a constant
    unassigned: tuple[Unassigned, ...]
    forks: tuple[Fork, ...]
    notes: tuple[Note, ...]
    errata: tuple[Erratum, ...]

    @property
    def structs(self) -> tuple[Struct, ...]:
        """All structs, in the order of declaration."""
        return tuple(s for interface in self.interfaces for s in interface.structs)

    @property
    def arrow_devices(self) -> tuple[Device, ...]:
        """The devices that have an Arrow macro."""
        return tuple(device for device in self.devices if device.arrow)

    @property
    def constants(self) -> tuple[Constant, ...]:
        """All constants except the device macros."""
        return tuple(c for interface in self.interfaces for c in interface.constants)

    @property
    def typedefs(self) -> tuple[TypedefDeclaration, ...]:
        return tuple(t for interface in self.interfaces for t in interface.typedefs)

    @property
    def device_typedef(self) -> TypedefDeclaration:
        """The type of Arrow's device types."""
        home = next(i for i in self.interfaces if i.device_macros)
        return home.typedefs[0]

    @property
    def data_type_codes(self) -> TypedefDeclaration:
        """DLPack's families of element types."""
        return next(t for t in self.typedefs if t.type.name == "DLDataTypeCode")

    def interface_constants(self, interface: Interface) -> list[Constant]:
        """Returns the macros inside the guard of the interface."""
        devices = self.arrow_devices if interface.device_macros else ()
        macros = [Constant(device.arrow or "", device.value, device.doc) for device in devices]
        return [*interface.constants, *macros]

    @property
    def declared_names(self) -> set[str]:
        """The possible subjects of errata and rules: structs, members, typedefs and guards."""
        names = {s.name for s in self.structs} | {t.type.name for t in self.typedefs}
        names |= {f"{s.name}.{f.name}" for s in self.structs for f in s.fields}
        return names | {interface.guard for interface in self.interfaces}

    def struct(self, name: str) -> Struct:
        return next(s for s in self.structs if s.name == name)


@dataclass(frozen=True)
class Spec(Declarations):
    """All of spec/ except the rules and texts, which are in rulebook.py."""

    runtimes: tuple[Runtime, ...]  # see runtimes.py
    async_table: AsyncTable
    cuda_array_interface: DictionaryInterface
    errno: ErrorTable
    tensor_types: TensorTypes
