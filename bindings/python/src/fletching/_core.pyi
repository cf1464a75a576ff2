"""What fletching has over C++: see fletching."""

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
    What wait_on and export_with_event do on a stream that is being captured into a graph of CUDA
    or HIP. On other streams it makes no difference.
    """

    REFUSE = 0
    """EBUSY, before a call that would invalidate the capture."""

    EXTERNAL = 1
    """
    Each launch of the graph waits for the event, or records it. Keep the array until the graph
    and everything instantiated from it are destroyed. Before the first launch an event that the
    graph records counts as done. ENOTSUP before CUDA 11.1 and ROCm 7.0.
    """

@final
class Schema:
    """
    The type of an array, or the schema of a record batch.

    Owns an ArrowSchema, which it shares with its children and exports: each keeps it alive.
    It does not change, and any thread may use it. Arrow C data interface, "The ArrowSchema
    structure".
    """

    @staticmethod
    def from_arrow(object: object) -> Schema:
        """
        The schema of an object that has __arrow_c_schema__; its capsule is consumed.
        TypeError for other objects and capsules, Error for one that was consumed
        before.
        """

    @property
    def format(self) -> str:
        """The format string; bytes that are not UTF-8 are surrogates."""

    @property
    def name(self) -> str:
        """The name of the field, empty for none."""

    @property
    def flags(self) -> int:
        """ARROW_FLAG_ values of fletching.abi, as one number."""

    @property
    def nullable(self) -> bool:
        """Whether values may be null."""

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """
        Keys and values, as bytes; of a key that occurs more than once, the last. Error for a
        block that cannot be read.
        """

    @property
    def children(self) -> list[Schema]:
        """The schemas of the fields, or of the values of a list."""

    @property
    def dictionary(self) -> Schema | None:
        """The schema of the values of a dictionary; None for other types."""

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    def __len__(self) -> int:
        """The number of fields."""

    def __getitem__(self, field: int | str) -> Schema:
        """
        A field by its index, from the end if negative, or its name. IndexError or KeyError
        for no such field.
        """

    def __contains__(self, name: object) -> bool:
        """Whether a field has the name."""

    def __arrow_c_schema__(self) -> CapsuleType:
        """
        A capsule arrow_schema, which owns a share of the schema. Arrow PyCapsule interface.
        """

@final
class Array:
    """
    An array, or a record batch, in memory of the CPU. len() is its length.

    Owns an ArrowArray, which it shares with its columns and exports: the producer's release
    is called when the last of them is destroyed, by the thread that destroys it. It does not
    change, and any thread may use it. Arrow C data interface, "The ArrowArray structure".
    """

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls, -1 if the producer has not counted them."""

    @property
    def offset(self) -> int:
        """How many values of the buffers come before the first one."""

    @property
    def n_buffers(self) -> int:
        """The number of buffers."""

    @property
    def buffers(self) -> tuple[int, ...]:
        """
        The addresses of the buffers, 0 for NULL, for your own kernels: valid as long as
        the array, and to be read after a wait for its event.
        """

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    @property
    def schema(self) -> Schema:
        """The schema, which lives independently of the array."""

    def column(self, column: int | str) -> Array:
        """
        A child by its index, from the end if negative, or its name. Nothing is copied; it
        keeps the data and the event alive. Nulls of the parent are not applied. Error for
        no such column and for one that is shorter than its parent.
        """

    def check(self, level: Literal["shape", "data"] = "shape") -> list[fletching._finding.Finding]:
        """
        Which rules of the Arrow texts the array breaks: an empty list for a correct one, at
        most 64 findings otherwise. 'shape' compares the structs with the schema and reads no
        buffer. 'data' waits for the event and also reads the buffers, where the host can, all
        without the GIL: a buffer that is shorter than the structs and its offsets say is read
        past its end. Error for a failed wait. Columnar format.
        """

    @staticmethod
    def from_arrow(object: object) -> Array:
        """
        The array of an object that has __arrow_c_array__, or __arrow_c_device_array__ and
        memory that the CPU can read; then it waits for the event, without the GIL. The
        capsules are consumed. TypeError for other objects and capsules, Error for a consumed
        capsule, for memory that the CPU cannot read and for a failed wait.
        """

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """
        Capsules arrow_schema and arrow_array, which own a share of the data. The data keeps
        its own schema; Error for a requested schema of another kind. Arrow PyCapsule
        interface.
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
        """For numpy.asarray: see to_numpy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        DLPack's device type and id. BufferError for a device that DLPack does not have.
        """

    def to_numpy(
        self, *, writable: bool = False, as_storage: bool = False
    ) -> numpy.typing.NDArray[Any]:
        """
        The values as an array of NumPy, which keeps them. Nothing is copied; it waits for the
        event. BufferError for nulls, for types that are not numbers, for memory that the CPU
        cannot read, and for `writable` where no producer has said that it is. `as_storage`:
        times and decimals as the integers that store them.
        """

    __dlpack_c_exchange_api__: CapsuleType

@final
class DeviceArray:
    """
    An array, or a record batch, on any device. len() is its length.

    Before you read the buffers, wait for the event: synchronize, wait_on or ready.

    Owns an ArrowDeviceArray, which it shares with its columns and exports: each keeps the
    data and the event alive, and the producer's release is called when the last of them is
    destroyed, without the GIL. It does not change, and any thread may use it. Arrow C device
    data interface, "The ArrowDeviceArray structure".
    """

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls, -1 if the producer has not counted them."""

    @property
    def offset(self) -> int:
        """How many values of the buffers come before the first one."""

    @property
    def n_buffers(self) -> int:
        """The number of buffers."""

    @property
    def buffers(self) -> tuple[int, ...]:
        """
        The addresses of the buffers, 0 for NULL, for your own kernels: valid as long as
        the array, and to be read after a wait for its event.
        """

    @property
    def type(self) -> str:
        """
        The type in words, such as 'list<int32>'; 'unknown(x)' for an unknown format.
        """

    @property
    def schema(self) -> Schema:
        """The schema, which lives independently of the array."""

    def column(self, column: int | str) -> DeviceArray:
        """
        A child by its index, from the end if negative, or its name. Nothing is copied; it
        keeps the data and the event alive. Nulls of the parent are not applied. Error for
        no such column and for one that is shorter than its parent.
        """

    def check(self, level: Literal["shape", "data"] = "shape") -> list[fletching._finding.Finding]:
        """
        Which rules of the Arrow texts the array breaks: an empty list for a correct one, at
        most 64 findings otherwise. 'shape' compares the structs with the schema and reads no
        buffer. 'data' waits for the event and also reads the buffers, where the host can, all
        without the GIL: a buffer that is shorter than the structs and its offsets say is read
        past its end. Error for a failed wait. Columnar format.
        """

    @staticmethod
    def from_arrow(object: object) -> DeviceArray:
        """
        The array of an object that has __arrow_c_device_array__ or
        __arrow_c_array__. It does not wait for the event. The capsules are consumed.
        TypeError for other objects and capsules, Error for a consumed capsule.
        """

    @property
    def device_type(self) -> int:
        """A number of fletching.abi.DeviceType."""

    @property
    def device_id(self) -> int:
        """The number of the device, -1 where there is none, as for the CPU."""

    @property
    def sync_event(self) -> int:
        """
        The address of the event, 0 for none. It is valid as long as the array.
        """

    def synchronize(self) -> None:
        """
        Blocks until the data may be read by the host, without the GIL; Ctrl-C interrupts
        it. Error, also of the other waits: EINVAL for an event that cannot be one, ENOTSUP for
        a device type without a runtime here (see register_waiter), and what the driver
        reports.
        """

    def wait_on(self, stream: object, *, on_capture: OnCapture = ...) -> None:
        """
        Lets a stream of the device wait for the data; returns at once. What is enqueued on it
        from now on may read the buffers. `stream`, here and in all functions: a handle as an
        int, or an object with __cuda_stream__, `ptr` (CuPy), `handle` (cuda-core) or
        `cuda_stream` (PyTorch). TypeError for others. Error: EINVAL for -1; EBUSY for a stream
        that is being captured, unless `on_capture` is OnCapture.EXTERNAL.
        """

    def ready(self) -> bool:
        """Whether the data may be read by the host. Does not block."""

    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Only where the CPU can read the data. It waits for the event."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Only for CUDA's memory, of a type that NumPy has. Its stream is after the event."""

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
        """For numpy.asarray: see to_numpy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        DLPack's device type and id. BufferError for a device that DLPack does not have.
        """

    def to_numpy(
        self, *, writable: bool = False, as_storage: bool = False
    ) -> numpy.typing.NDArray[Any]:
        """
        The values as an array of NumPy, which keeps them. Nothing is copied; it waits for the
        event. BufferError for nulls, for types that are not numbers, for memory that the CPU
        cannot read, and for `writable` where no producer has said that it is. `as_storage`:
        times and decimals as the integers that store them.
        """

    __dlpack_c_exchange_api__: CapsuleType

    def export_with_event(self, stream: object, *, on_capture: OnCapture = ...) -> DeviceArray:
        """
        The same data with an event that is after everything on the stream now. For data
        that work on the stream is still writing. The result owns the event, and the context
        of the stream has to outlive it. The stream waits for the event of the array first.
        Errors: EBUSY for a stream that is being captured, unless `on_capture` is
        OnCapture.EXTERNAL; ENOTSUP for other devices than those of CUDA, HIP and OpenCL.
        """

    def release_after(self, stream: object) -> None:
        """
        Keeps the data until everything is done that is on the stream now. Call it before
        you drop an array that your own work still reads. Does not block; the release may be
        called on another thread. Errors: EBUSY for a stream that is being captured, always:
        each launch of the graph reads the data; ENOTSUP as of export_with_event.
        """

@final
class ArrayStream:
    """
    Batches in memory of the CPU: an iterator of Array, read or exported once.

    Owns an ArrowArrayStream. What is left after some batches can be exported. Any thread may
    use it; calls wait for each other, without the GIL. An error of the producer is an Error
    with its errno value and text. Arrow C stream interface.
    """

    @property
    def schema(self) -> Schema:
        """
        The schema of every batch. The first access asks the producer; Error for what it
        reports, and for a consumed stream.
        """

    def __iter__(self) -> ArrayStream: ...
    def __next__(self) -> Array: ...
    def close(self) -> None:
        """Releases the stream before its end. Batches stay valid."""

    def __enter__(self) -> ArrayStream: ...
    def __exit__(self, *args: object) -> None:
        """Closes the stream."""

    @staticmethod
    def from_arrow(object: object) -> ArrayStream:
        """
        The stream of an object that has __arrow_c_stream__, or __arrow_c_device_stream__ and
        memory that the CPU can read. The capsule is consumed; no batch is read. TypeError for
        other objects and capsules, Error for a consumed capsule.
        """

    @staticmethod
    def from_batches(schema: _HasSchema, batches: Iterable[object]) -> ArrayStream:
        """
        A stream of the arrays of an iterable, of any library. The consumer's thread asks it
        for the next one, and raises its exceptions; for consumers that are not in Python they
        are errors with the errno value of an OSError. Error for a batch of another type than
        `schema`. The stream keeps the iterator.
        """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """
        A capsule arrow_array_stream with what is left of the stream, once: then this object
        is consumed. Error for a consumed stream and a requested schema of another kind.
        """

    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> CapsuleType: ...

@final
class DeviceArrayStream:
    """
    Batches on any device: an iterator of DeviceArray, read or exported once.

    Owns an ArrowDeviceArrayStream; see ArrayStream for the rest. Each batch has an event of
    its own. Arrow C device stream interface.
    """

    @property
    def schema(self) -> Schema:
        """
        The schema of every batch. The first access asks the producer; Error for what it
        reports, and for a consumed stream.
        """

    def __iter__(self) -> DeviceArrayStream: ...
    def __next__(self) -> DeviceArray: ...
    def close(self) -> None:
        """Releases the stream before its end. Batches stay valid."""

    def __enter__(self) -> DeviceArrayStream: ...
    def __exit__(self, *args: object) -> None:
        """Closes the stream."""

    @staticmethod
    def from_arrow(object: object) -> DeviceArrayStream:
        """
        The stream of an object that has __arrow_c_device_stream__ or __arrow_c_stream__. The
        capsule is consumed; no batch is read. TypeError for other objects and capsules, Error
        for a consumed capsule.
        """

    @staticmethod
    def from_batches(
        schema: _HasSchema, device_type: int, batches: Iterable[object]
    ) -> DeviceArrayStream:
        """
        A stream of the arrays of an iterable, which are on that type of device; see
        ArrayStream. A batch on another one is an error of the stream.
        """

    @property
    def device_type(self) -> int:
        """A number of fletching.abi.DeviceType, of every batch."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """Only where the CPU can read the batches."""

    def __arrow_c_device_stream__(
        self, requested_schema: object | None = None, **kwargs: object
    ) -> CapsuleType: ...

def from_buffer(object: object, *, name: str = "") -> Array:
    """
    The memory of an object that has the buffer protocol, such as bytes or a NumPy array
    of one dimension, as an array without nulls. Nothing is copied: do not change the
    values while the array or an export of it is used. TypeError for other types than numbers,
    BufferError for memory that is not in one piece.
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
    A schema of a format string of the C data interface, such as 'i', 'u' or '+s'. `dictionary`
    is the type of the values, where `format` is the one of the indices. Error for a text with
    a NUL in it, and for the children that maps, run ends and dictionaries cannot have.
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
    An array of `schema` over memory of objects that have the buffer protocol, None for a
    buffer that is not there: validity as bits, then offsets and values as Arrow has them. Of
    views the buffers of long texts follow; the list of their sizes is made.
    Nothing is copied: do not change the values while the array or an export of it is used.
    `children` and `dictionary` are arrays of any library. Error for a buffer that is too
    small, for offsets, views, type ids, run ends and indices that refer to nothing, for views
    that differ from their text, and for children of another type or number.
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
    The tensor of an object that has __dlpack__. The first dimension is the length. Nothing
    is copied unless the elements are not in one piece, or `copy` is True. `stream` is
    yours, as of wait_on or -1 for no order: the producer orders its work before it, and the
    event of the array is after both. The tensor is released with the array. TypeError for a
    type that Arrow lacks and for a wrong capsule, BufferError for a copy that is not allowed, a
    malformed tensor and one on another device than `__dlpack_device__` says, Error for a
    stream that the device cannot have, such as 0 on CUDA, and a failure of the driver.
    `as_storage`: complex numbers and other types that Arrow lacks as lists of what stores
    them.
    """

@final
class CudaArrayMask:
    """The mask of an array in __cuda_array_interface__."""

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
    The array that __cuda_array_interface__ describes: of an object, or a dictionary. `owner`,
    or else the object, is kept until the array is released. The event of the array is after
    the stream of the dictionary, unless `sync` is False or the environment variable
    FLETCHING_CUDA_ARRAY_INTERFACE_SYNC is 0: then you keep the exchange free of data races.
    `stream`, as of wait_on, is where you use the data: the producer's stream waits for it at
    the release. `as_storage`: as of from_dlpack. TypeError with the rule for a dictionary that
    breaks one; Error for a failure of the driver. CUDA Array Interface, version 3.
    """

def check_cuda_array_interface(interface: object) -> list[fletching._violation.Violation]:
    """
    What is wrong with a dictionary and with those of its masks. No Exception leaves it,
    whatever the values do, and no device memory is read.
    """

def pending_releases() -> fletching._pending.PendingReleases:
    """
    Counts of the arrays that wait for a stream before they are released: of
    release_after, and of exchanges by the CUDA Array Interface. The end of the
    interpreter waits up to two seconds for those that are pending or running.
    """

@final
class VulkanContext:
    """What a wait for an event of Vulkan needs; the arguments are addresses."""

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
        """Blocks until the data may be read by the host."""

    def wait_on(self, array: DeviceArray, command_buffer: int) -> None:
        """Records a wait for the data into a VkCommandBuffer."""

    def ready(self, array: DeviceArray) -> bool:
        """Whether the data may be read. Does not block."""

def register_waiter(device_type: int, waiter: object) -> None:
    """
    Lets DeviceArray wait on a device type without a runtime in Fletching. `waiter` has
    synchronize(event), wait_on(event, stream) and ready(event), of addresses, which are
    called on any thread. It lives until the interpreter ends.
    """

@final
class Gate:
    """Whether the next notification calls Python."""

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
        """The number of a state of the consumer in docs/reference/async.md."""

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
        """The number of a state of the producer in docs/reference/async.md."""

    @property
    def demand(self) -> int: ...

def finding_report() -> int: ...
def layout() -> int: ...
@overload
def from_arrow(object: _HasDeviceArray) -> DeviceArray:
    """What an object has by the Arrow PyCapsule protocols."""

@overload
def from_arrow(object: _HasArray) -> Array: ...
@overload
def from_arrow(object: _HasDeviceStream) -> DeviceArrayStream: ...
@overload
def from_arrow(object: _HasStream) -> ArrayStream: ...
@overload
def from_arrow(object: _HasSchema) -> Schema: ...
