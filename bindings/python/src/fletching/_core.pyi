"""The C++ part of the package fletching: see fletching."""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, final, overload

import numpy.typing
from typing_extensions import CapsuleType

import fletching._finding
import fletching._pending
import fletching._violation
from fletching._error import Error as Error

class _HasDeviceArray(Protocol):
    def __arrow_c_device_array__(
        self, requested_schema: Any = ..., **kwargs: Any
    ) -> tuple[Any, Any]: ...

class _HasArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = ...) -> tuple[Any, Any]: ...

class _HasDeviceStream(Protocol):
    def __arrow_c_device_stream__(self, requested_schema: Any = ..., **kwargs: Any) -> Any: ...

class _HasStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = ...) -> Any: ...

class _HasSchema(Protocol):
    def __arrow_c_schema__(self) -> Any: ...

@final
class OnCapture(enum.Enum):
    """
    The behavior of an operation on a stream that is being captured into a
    CUDA or HIP graph. It has no effect on other streams.
    """

    REFUSE = 0
    """Raises EBUSY before any call that would invalidate the capture."""

    EXTERNAL = 1
    """
    The graph waits for the event, or records it, each time it is launched. Keep the
    array until the graph and everything instantiated from it are destroyed. Until the
    first launch, an event that the graph records counts as completed. Raises ENOTSUP
    before CUDA 11.1 and ROCm 7.0.
    """

    KEEP = 2
    """
    For release_after and an array that the graph does not read: keeps the data until
    the capture has ended and the current work on the stream is done. The stream must
    live until then. Other operations behave as with REFUSE.
    """

@final
class Schema:
    """
    The type of an array, or the schema of a record batch.

    Owns an ArrowSchema and shares it with its children and exports, each of which keeps it
    alive. Immutable; any thread may use it. Arrow C data interface, "The ArrowSchema
    structure".
    """

    @staticmethod
    def from_arrow(object: object) -> Schema:
        """
        Imports the schema of an object that has __arrow_c_schema__, and consumes
        its capsule. Raises TypeError for other objects and capsules, and Error for
        a consumed capsule.
        """

    @property
    def format(self) -> str:
        """The format string. Bytes that are not UTF-8 become surrogates."""

    @property
    def name(self) -> str:
        """The name of the field; empty if it has none."""

    @property
    def flags(self) -> int:
        """The ARROW_FLAG_ values of fletching.abi, combined into one number."""

    @property
    def nullable(self) -> bool:
        """Whether values may be null."""

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """
        The metadata, with keys and values as bytes. If a key is repeated, its last
        value is returned. Raises Error for a malformed block.
        """

    @property
    def children(self) -> list[Schema]:
        """The schemas of the fields, or of the values of a list."""

    @property
    def dictionary(self) -> Schema | None:
        """The schema of the dictionary's values; None for other types."""

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    def __len__(self) -> int:
        """The number of fields."""

    def __getitem__(self, field: int | str) -> Schema:
        """
        Returns a field by name or index; a negative index counts from the end. Raises
        KeyError or IndexError if there is no such field.
        """

    def __contains__(self, name: object) -> bool:
        """Whether a field has this name."""

    def __arrow_c_schema__(self) -> CapsuleType:
        """
        Returns an arrow_schema capsule, which owns a share of the schema. Arrow PyCapsule
        interface.
        """

@final
class Array:
    """
    An array, or a record batch, in CPU memory. len() is its length.

    Owns an ArrowArray and shares it with its columns and exports. The last of them calls
    the producer's release callback when it is destroyed, on the thread that destroys it.
    Immutable; any thread may use it. Arrow C data interface, "The ArrowArray structure".
    """

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls; -1 if the producer has not counted them."""

    @property
    def offset(self) -> int:
        """
        The number of values in the buffers before the first value of the array.
        """

    @property
    def n_buffers(self) -> int:
        """The number of buffers."""

    @property
    def buffers(self) -> tuple[int, ...]:
        """
        The addresses of the buffers, 0 for NULL, for your own kernels. They are valid for
        the lifetime of the array. Wait for its event before you read the buffers.
        """

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    @property
    def schema(self) -> Schema:
        """The schema, which may outlive the array."""

    def column(self, column: int | str) -> Array:
        """
        Returns a child by name or index; a negative index counts from the end. Does not
        copy. The column keeps the data and the event alive. Nulls of the parent are not
        applied. Raises Error if there is no such column, or if it is shorter than its
        parent.
        """

    def check(self, level: Literal["shape", "data"] = "shape") -> list[fletching._finding.Finding]:
        """
        Returns the violated rules of the Arrow texts: at most 64 findings, an empty list
        for a correct array. 'shape' compares the structs with the schema and reads no
        buffer. 'data' waits for the event and also reads the buffers in host memory, all
        without the GIL. A buffer that is shorter than the structs and its offsets imply is
        read past its end. Raises Error for a failed wait. Columnar format.
        """

    @staticmethod
    def from_arrow(object: object) -> Array:
        """
        Imports the array of an object that has __arrow_c_array__, or
        __arrow_c_device_array__ and memory that the CPU can read; in that case waits for
        the event, without the GIL. Consumes the capsules. Raises TypeError for other
        objects and capsules, and Error for a consumed capsule, for memory that the CPU
        cannot read and for a failed wait.
        """

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """
        Returns the capsules arrow_schema and arrow_array, which own a share of the data.
        The data keeps its own schema. Raises Error for a requested schema of another kind.
        Arrow PyCapsule interface.
        """

    def __arrow_c_device_array__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __array__(
        self, dtype: numpy.typing.DTypeLike | None = None, copy: bool | None = None
    ) -> numpy.typing.NDArray[Any]:
        """Implements numpy.asarray; see to_numpy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        Returns the DLPack device type and id. Raises BufferError for a device that DLPack
        lacks.
        """

    def to_numpy(
        self, *, writable: bool = False, as_storage: bool = False
    ) -> numpy.typing.NDArray[Any]:
        """
        Returns the values as a NumPy array, which keeps them alive. Does not copy; waits
        for the event. Raises BufferError for nulls, for types that are not numbers, for
        memory that the CPU cannot read, and for `writable` unless a producer has marked the
        memory as writable. `as_storage` returns times and decimals as the integers that
        store them.
        """

    __dlpack_c_exchange_api__: CapsuleType

@final
class DeviceArray:
    """
    An array, or a record batch, on any device. len() is its length.

    Wait for the event before you read the buffers: synchronize, wait_on or ready.

    Owns an ArrowDeviceArray and shares it with its columns and exports, each of which keeps
    the data and the event alive. The last of them calls the producer's release callback
    when it is destroyed, without the GIL. Immutable; any thread may use it. Arrow C device
    data interface, "The ArrowDeviceArray structure".
    """

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls; -1 if the producer has not counted them."""

    @property
    def offset(self) -> int:
        """
        The number of values in the buffers before the first value of the array.
        """

    @property
    def n_buffers(self) -> int:
        """The number of buffers."""

    @property
    def buffers(self) -> tuple[int, ...]:
        """
        The addresses of the buffers, 0 for NULL, for your own kernels. They are valid for
        the lifetime of the array. Wait for its event before you read the buffers.
        """

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    @property
    def schema(self) -> Schema:
        """The schema, which may outlive the array."""

    def column(self, column: int | str) -> DeviceArray:
        """
        Returns a child by name or index; a negative index counts from the end. Does not
        copy. The column keeps the data and the event alive. Nulls of the parent are not
        applied. Raises Error if there is no such column, or if it is shorter than its
        parent.
        """

    def check(self, level: Literal["shape", "data"] = "shape") -> list[fletching._finding.Finding]:
        """
        Returns the violated rules of the Arrow texts: at most 64 findings, an empty list
        for a correct array. 'shape' compares the structs with the schema and reads no
        buffer. 'data' waits for the event and also reads the buffers in host memory, all
        without the GIL. A buffer that is shorter than the structs and its offsets imply is
        read past its end. Raises Error for a failed wait. Columnar format.
        """

    @staticmethod
    def from_arrow(object: object) -> DeviceArray:
        """
        Imports the array of an object that has __arrow_c_device_array__ or
        __arrow_c_array__. Does not wait for the event. Consumes the capsules.
        Raises TypeError for other objects and capsules, and Error for a consumed
        capsule.
        """

    @property
    def device_type(self) -> int:
        """The device type, a number of fletching.abi.DeviceType."""

    @property
    def device_id(self) -> int:
        """
        The number of the device; -1 for a device without a number, such as the CPU.
        """

    @property
    def sync_event(self) -> int:
        """
        The address of the event; 0 if there is none. Valid for the lifetime of the array.
        """

    def synchronize(self) -> None:
        """
        Blocks until the host may read the data, without the GIL. Ctrl-C interrupts the
        wait. Raises Error, as do the other waits: EINVAL for an invalid event, ENOTSUP for
        a device type without a runtime in Fletching (see register_waiter), and the
        driver's errors.
        """

    def wait_on(self, stream: object, *, on_capture: OnCapture = ...) -> None:
        """
        Makes later work on a stream of the device wait for the data, and returns at once.
        That work may read the buffers. `stream`, here and in all functions, is a handle as
        an int, or an object with __cuda_stream__, `ptr` (CuPy), `handle` (cuda-core) or
        `cuda_stream` (PyTorch). Raises TypeError for other objects, and Error: EINVAL for
        -1; EBUSY for a stream that is being captured, unless `on_capture` is
        OnCapture.EXTERNAL.
        """

    def ready(self) -> bool:
        """Whether the host may read the data. Does not block."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Exists only if the CPU can read the data. Waits for the event."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Exists only for CUDA memory of a type that NumPy has. Its stream waits for the event."""

    def __arrow_c_device_array__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __array__(
        self, dtype: numpy.typing.DTypeLike | None = None, copy: bool | None = None
    ) -> numpy.typing.NDArray[Any]:
        """Implements numpy.asarray; see to_numpy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        Returns the DLPack device type and id. Raises BufferError for a device that DLPack
        lacks.
        """

    def to_numpy(
        self, *, writable: bool = False, as_storage: bool = False
    ) -> numpy.typing.NDArray[Any]:
        """
        Returns the values as a NumPy array, which keeps them alive. Does not copy; waits
        for the event. Raises BufferError for nulls, for types that are not numbers, for
        memory that the CPU cannot read, and for `writable` unless a producer has marked the
        memory as writable. `as_storage` returns times and decimals as the integers that
        store them.
        """

    __dlpack_c_exchange_api__: CapsuleType

    def export_with_event(self, stream: object, *, on_capture: OnCapture = ...) -> DeviceArray:
        """
        Returns the same data with an event that completes when the current work on the
        stream is done, for data that this work still writes. The stream first waits for
        the event of the array. The result owns the event; the context of the stream must
        outlive it. Raises Error: EBUSY for a stream that is being captured, unless
        `on_capture` is OnCapture.EXTERNAL; ENOTSUP for devices other than those of CUDA,
        HIP and OpenCL.
        """

    def release_after(self, stream: object, *, on_capture: OnCapture = ...) -> None:
        """
        Keeps the data until the current work on the stream is done. Call it before you
        drop an array that your own work still reads. Does not block. The release may run
        on another thread. Raises Error: EBUSY for a stream that is being captured, because
        each launch of the graph reads the data, unless `on_capture` is OnCapture.KEEP;
        ENOTSUP as in export_with_event.
        """

@final
class ArrayStream:
    """
    Batches in CPU memory: an iterator of Array that is read or exported once.

    Owns an ArrowArrayStream. After some batches are read, the rest can be exported. Any
    thread may use it; calls wait for each other, without the GIL. If the producer fails,
    raises an Error with the producer's errno value and message. Arrow C stream interface.
    """

    @property
    def schema(self) -> Schema:
        """
        The schema of every batch. The first access calls the producer. Raises Error for the
        producer's error and for a consumed stream.
        """

    def __iter__(self) -> ArrayStream: ...
    def __next__(self) -> Array: ...
    def close(self) -> None:
        """Releases the stream early. Batches stay valid."""

    def __enter__(self) -> ArrayStream: ...
    def __exit__(self, *args: object) -> None:
        """Closes the stream."""

    @staticmethod
    def from_arrow(object: object) -> ArrayStream:
        """
        Imports the stream of an object that has __arrow_c_stream__, or
        __arrow_c_device_stream__ and memory that the CPU can read. Consumes the capsule;
        reads no batch. Raises TypeError for other objects and capsules, and Error for a
        consumed capsule.
        """

    @staticmethod
    def from_batches(schema: _HasSchema, batches: Iterable[object]) -> ArrayStream:
        """
        Makes a stream from an iterable of arrays of any library. The stream keeps the
        iterator and calls it on the consumer's thread. A consumer in Python gets the
        iterator's exceptions; other consumers get errors with the errno value of an
        OSError. A batch of another type than `schema` is an Error.
        """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """
        Returns an arrow_array_stream capsule with the rest of the stream, and consumes
        this object. Raises Error for a consumed stream and for a requested schema of
        another kind.
        """

    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> CapsuleType: ...

@final
class DeviceArrayStream:
    """
    Batches on any device: an iterator of DeviceArray that is read or exported once.

    Owns an ArrowDeviceArrayStream; see ArrayStream for the rest. Each batch has a separate
    event. Arrow C device stream interface.
    """

    @property
    def schema(self) -> Schema:
        """
        The schema of every batch. The first access calls the producer. Raises Error for the
        producer's error and for a consumed stream.
        """

    def __iter__(self) -> DeviceArrayStream: ...
    def __next__(self) -> DeviceArray: ...
    def close(self) -> None:
        """Releases the stream early. Batches stay valid."""

    def __enter__(self) -> DeviceArrayStream: ...
    def __exit__(self, *args: object) -> None:
        """Closes the stream."""

    @staticmethod
    def from_arrow(object: object) -> DeviceArrayStream:
        """
        Imports the stream of an object that has __arrow_c_device_stream__ or
        __arrow_c_stream__. Consumes the capsule; reads no batch. Raises TypeError for other
        objects and capsules, and Error for a consumed capsule.
        """

    @staticmethod
    def from_batches(
        schema: _HasSchema, device_type: int, batches: Iterable[object]
    ) -> DeviceArrayStream:
        """
        Makes a stream from an iterable of arrays on devices of `device_type`; see
        ArrayStream. A batch of another device type is an error of the stream.
        """

    @property
    def device_type(self) -> int:
        """The device type of every batch, a number of fletching.abi.DeviceType."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """Exists only if the CPU can read the batches."""

    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> CapsuleType: ...

def from_buffer(object: object, *, name: str = "") -> Array:
    """
    Makes an array without nulls over the memory of an object that has the buffer protocol,
    such as bytes or a one-dimensional NumPy array. Does not copy: do not change the values
    while the array or an export of it is used. Raises TypeError for elements that are not
    numbers, and BufferError for memory that is not contiguous.
    """

def make_schema(
    format: str,
    name: str = "",
    *,
    nullable: bool = True,
    metadata: Mapping[str, str | bytes] | Mapping[bytes, str | bytes] | None = None,
    children: Iterable[_HasSchema] = (),
    dictionary: _HasSchema | None = None,
) -> Schema:
    """
    Makes a schema from a format string of the C data interface, such as 'i', 'u' or '+s'.
    With `dictionary`, the type of the values, `format` is the indices' format. Raises Error
    for a string that contains a NUL, and for maps, run ends and dictionaries with wrong
    children.
    """

def from_buffers(
    schema: _HasSchema,
    length: int,
    buffers: Iterable[object],
    *,
    children: Iterable[object] = (),
    dictionary: object = None,
    offset: int = 0,
) -> Array:
    """
    Makes an array of `schema` over the memory of objects that have the buffer protocol, or
    None for a missing buffer. The buffers are in Arrow's order: validity bits, then offsets
    and values; for views, then the variadic buffers, without the buffer of their sizes,
    which is added. Does not copy: do not change the values while the array or an export of
    it is used. `children` and `dictionary` are arrays of any library. Raises Error for a
    buffer that is too small, for offsets, views, type ids, run ends and indices that are
    out of range, for views that do not match their text, and for children of another type
    or number.
    """

def move_to_capsule(address: int, name: str) -> CapsuleType: ...
def move_from_capsule(capsule: object, address: int, name: str) -> None: ...
def from_dlpack(
    object: object,
    *,
    device: tuple[int, int] | None = None,
    copy: bool | None = None,
    stream: object = None,
    as_storage: bool = False,
) -> DeviceArray:
    """
    Imports the tensor of an object that has __dlpack__. The first dimension is the length.
    Does not copy unless the elements are not contiguous or `copy` is True. `stream` is your
    stream, as in wait_on, or -1 for no synchronization: the producer makes it wait for its
    work, and the event of the array completes after both. The tensor is released with the
    array. Raises TypeError for a type that Arrow lacks and for a wrong capsule; BufferError
    for a copy that is not allowed, for a malformed tensor and for a tensor on another
    device than `__dlpack_device__` returns; Error for an invalid stream, such as 0 on CUDA,
    and for a driver error. `as_storage` imports complex numbers and other types that Arrow
    lacks as lists of their storage type.
    """

@final
class CudaArrayMask:
    """The mask in the __cuda_array_interface__ of an array."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...

def from_cuda_array_interface(
    object: object,
    owner: object = None,
    sync: bool = True,
    *,
    stream: object = None,
    as_storage: bool = False,
) -> DeviceArray:
    """
    Imports the array that __cuda_array_interface__ describes. `object` has this attribute,
    or is the dictionary. `owner`, or else the object, is kept until the array is released.
    The event of the array completes after the current work on the dictionary's stream,
    unless `sync` is False or the environment variable FLETCHING_CUDA_ARRAY_INTERFACE_SYNC
    is 0: you must then prevent data races. `stream`, as in wait_on, is the stream on which
    you use the data: the producer's stream waits for it at the release. `as_storage` is as
    in from_dlpack. Raises TypeError with the rule for a dictionary that violates one, and
    Error for a driver error. CUDA Array Interface, version 3.
    """

def check_cuda_array_interface(interface: object) -> list[fletching._violation.Violation]:
    """
    Returns the violations in a dictionary and in those of its masks. Raises no Exception,
    whatever the values do, and reads no device memory.
    """

def pending_releases() -> fletching._pending.PendingReleases:
    """
    Returns counts of the arrays whose release waits for a stream: those of
    release_after and of exchanges through the CUDA Array Interface. At exit, the
    interpreter waits up to two seconds for the pending and running ones.
    """

@final
class VulkanContext:
    """The Vulkan objects for a wait; the arguments are addresses."""

    def __init__(
        self,
        *,
        device: int,
        producer_queue: int = 0,
        queue: int = 0,
        set_stages: int = 65536,
        get_device_proc_addr: int = 0,
    ) -> None: ...
    def synchronize(self, array: DeviceArray) -> None:
        """Blocks until the host may read the data."""

    def wait_on(self, array: DeviceArray, command_buffer: int) -> None:
        """Records a wait for the data into a VkCommandBuffer."""

    def ready(self, array: DeviceArray) -> bool:
        """Whether the data may be read. Does not block."""

def register_waiter(device_type: int, waiter: object) -> None:
    """
    Makes DeviceArray wait with `waiter` on a device type without a runtime in Fletching.
    `waiter` has the methods synchronize(event), wait_on(event, stream) and ready(event).
    They take addresses and are called on any thread. The waiter lives until the interpreter
    ends.
    """

@final
class Gate:
    """Determines whether the next notification calls Python."""

    def __init__(self) -> None: ...
    def open(self) -> None: ...

@final
class AsyncConsumer:
    """The raw consumer of an async stream."""

    @staticmethod
    def create(notify: Callable[[], object], gate: Gate | None = None) -> AsyncConsumer: ...
    def handler(self) -> int: ...
    def request(self, n: int) -> None: ...
    def take(self, more: int) -> DeviceArray | None: ...
    def cancel(self) -> None: ...
    def raise_error(self) -> None: ...
    @property
    def ended(self) -> bool: ...
    @property
    def schema(self) -> Schema | None: ...
    @property
    def metadata(self) -> dict[bytes, bytes]: ...
    @property
    def batch_metadata(self) -> dict[bytes, bytes]: ...
    @property
    def state(self) -> int:
        """The state of the consumer, as numbered in docs/reference/async.md."""

    @property
    def device_type(self) -> int: ...

@final
class AsyncProducer:
    """The raw producer of an async stream."""

    @staticmethod
    def start(
        handler: int,
        device_type: int,
        metadata: dict[bytes | str, bytes | str],
        on_demand: Callable[[], object],
        on_stop: Callable[[], object],
        on_release: Callable[[], object],
        gate: Gate | None = None,
        is_nearby: bool = False,
    ) -> AsyncProducer: ...
    def schema(self, schema: object) -> bool: ...
    def push(self, batch: object, metadata: dict[bytes | str, bytes | str]) -> bool: ...
    def end(self) -> bool: ...
    def fail(self, code: int, text: str, metadata: object | None = None) -> None: ...
    @property
    def state(self) -> int:
        """The state of the producer, as numbered in docs/reference/async.md."""

    @property
    def demand(self) -> int: ...

def finding_report() -> int: ...
def layout() -> int: ...
@overload
def from_arrow(object: _HasDeviceArray) -> DeviceArray:
    """Imports the data of an object that implements an Arrow PyCapsule protocol."""

@overload
def from_arrow(object: _HasArray) -> Array: ...
@overload
def from_arrow(object: _HasDeviceStream) -> DeviceArrayStream: ...
@overload
def from_arrow(object: _HasStream) -> ArrayStream: ...
@overload
def from_arrow(object: _HasSchema) -> Schema: ...
