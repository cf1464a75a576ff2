"""What fletching has over C++: see fletching."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy.typing
from typing_extensions import CapsuleType

import fletching._violation

class Schema:
    """The type of an array, or the schema of a record batch."""

    @staticmethod
    def from_arrow(object: object) -> Schema:
        """The schema of an object that has __arrow_c_schema__."""

    @property
    def format(self) -> str:
        """The format string."""

    @property
    def name(self) -> str: ...
    @property
    def flags(self) -> int: ...
    @property
    def nullable(self) -> bool: ...
    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Keys and values, as bytes."""

    @property
    def children(self) -> list[Schema]: ...
    @property
    def dictionary(self) -> Schema | None: ...
    @property
    def type(self) -> str:
        """The type in words."""

    def __arrow_c_schema__(self) -> CapsuleType: ...

class Array:
    """An array, or a record batch, in memory of the CPU."""

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls, -1 when the producer has not counted."""

    @property
    def offset(self) -> int: ...
    @property
    def n_buffers(self) -> int: ...
    @property
    def type(self) -> str:
        """The type in words."""

    @property
    def schema(self) -> Schema: ...
    def column(self, column: int | str) -> Array:
        """
        A child by its index or its name. It keeps the data and the event alive.
        """

    @staticmethod
    def from_arrow(object: object) -> Array:
        """
        The array of an object that has __arrow_c_array__, or __arrow_c_device_array__
        and memory that the CPU can read; then it waits for the event.
        """

    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: object
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def to_numpy(self, *, writable: bool = False) -> numpy.typing.NDArray[Any]:
        """
        The values as an array of NumPy, which keeps them. Nothing is copied; it waits for the
        event. BufferError for nulls, for types that are not numbers, for memory that the CPU
        cannot read, and for `writable` where no producer has said that it is.
        """

    __dlpack_c_exchange_api__: CapsuleType

class DeviceArray:
    """
    An array, or a record batch, on any device.

    Before the buffers are read, wait for the event.
    """

    def __len__(self) -> int: ...
    @property
    def null_count(self) -> int:
        """The number of nulls, -1 when the producer has not counted."""

    @property
    def offset(self) -> int: ...
    @property
    def n_buffers(self) -> int: ...
    @property
    def type(self) -> str:
        """The type in words."""

    @property
    def schema(self) -> Schema: ...
    def column(self, column: int | str) -> DeviceArray:
        """
        A child by its index or its name. It keeps the data and the event alive.
        """

    @staticmethod
    def from_arrow(object: object) -> DeviceArray:
        """
        The array of an object that has __arrow_c_device_array__ or
        __arrow_c_array__. It does not wait for the event.
        """

    @property
    def device_type(self) -> int:
        """A number of fletching.abi.DeviceType."""

    @property
    def device_id(self) -> int: ...
    @property
    def sync_event(self) -> int:
        """The address of the event, 0 for none."""

    def synchronize(self) -> None:
        """Blocks until the data may be read by the host."""

    def wait_on(self, stream: object) -> None:
        """Lets a stream of the device wait for the data; returns at once."""

    def ready(self) -> bool:
        """Whether the data may be read. Does not block."""

    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Only where the CPU can read the data. It waits for the event."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Only for CUDA's memory, of a type that NumPy has. Its stream is after the event."""

    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: object
    ) -> tuple[CapsuleType, CapsuleType]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def to_numpy(self, *, writable: bool = False) -> numpy.typing.NDArray[Any]:
        """
        The values as an array of NumPy, which keeps them. Nothing is copied; it waits for the
        event. BufferError for nulls, for types that are not numbers, for memory that the CPU
        cannot read, and for `writable` where no producer has said that it is.
        """

    __dlpack_c_exchange_api__: CapsuleType

    def export_with_event(self, stream: object) -> DeviceArray:
        """
        The same data with an event that is after everything on the stream now. For data
        that work on the stream is still writing. The array must not have an event.
        """

    def release_after(self, stream: object) -> None:
        """
        Keeps the data until everything is done that is on the stream now. Call it before
        you drop an array that your own work still reads. Does not block.
        """

class ArrayStream:
    """Batches in memory of the CPU, read or exported once."""

    @property
    def schema(self) -> Schema:
        """The schema of every batch. The first access asks the producer."""

    def __iter__(self) -> ArrayStream: ...
    def __next__(self) -> Array: ...
    def close(self) -> None:
        """Releases the stream before its end. Batches stay valid."""

    @staticmethod
    def from_arrow(object: object) -> ArrayStream:
        """
        The stream of an object that has __arrow_c_stream__, or
        __arrow_c_device_stream__ and memory that the CPU can read.
        """

    @staticmethod
    def from_batches(schema: Schema, batches: Iterable[object]) -> ArrayStream:
        """
        A stream of what an iterable of arrays has; an exception of it is the error of the
        stream, and it is asked on the consumer's thread.
        """

    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType: ...
    def __arrow_c_device_stream__(
        self, requested_schema: CapsuleType | None = None, **kwargs: object
    ) -> CapsuleType: ...

class DeviceArrayStream:
    """Batches on any device, read or exported once."""

    @property
    def schema(self) -> Schema:
        """The schema of every batch. The first access asks the producer."""

    def __iter__(self) -> DeviceArrayStream: ...
    def __next__(self) -> DeviceArray: ...
    def close(self) -> None:
        """Releases the stream before its end. Batches stay valid."""

    @staticmethod
    def from_arrow(object: object) -> DeviceArrayStream:
        """
        The stream of an object that has __arrow_c_device_stream__ or __arrow_c_stream__.
        """

    @staticmethod
    def from_batches(
        schema: Schema, device_type: int, batches: Iterable[object]
    ) -> DeviceArrayStream:
        """
        A stream of what an iterable of arrays on that type of device has; see ArrayStream.
        """

    @property
    def device_type(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Only where the CPU can read the batches."""

    def __arrow_c_device_stream__(
        self, requested_schema: CapsuleType | None = None, **kwargs: object
    ) -> CapsuleType: ...

def from_buffer(object: object, *, name: str = "") -> Array:
    """
    The memory of an object that has the buffer protocol, such as bytes or a NumPy array
    of one dimension, as an array without nulls. Nothing is copied: do not change the
    values while the array or an export of it is used.
    """

def from_dlpack(
    object: object,
    *,
    device: tuple[int, int] | None = None,
    copy: bool | None = None,
    stream: int | None = None,
) -> DeviceArray:
    """
    The tensor of an object that has __dlpack__. The first dimension is the length. Nothing is
    copied unless the elements are not in one piece, or `copy` is True. `stream` is yours: the
    producer orders its work before it, and the event of the array is after both.
    """

class CudaArrayMask:
    """The mask of an array in __cuda_array_interface__."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...

def from_cuda_array_interface(
    object: object, owner: object = None, sync: bool = True, *, stream: object = None
) -> DeviceArray:
    """
    The array that __cuda_array_interface__ describes: of an object, or a dictionary. `owner`,
    or else the object, is kept until the array is released. The event of the array is after
    the stream of the dictionary, unless `sync` is False or the environment variable
    FLETCHING_CUDA_ARRAY_INTERFACE_SYNC is 0: then you keep the exchange free of data races.
    `stream` is where you use the data: the producer's stream waits for it at the release.
    """

def check_cuda_array_interface(interface: object) -> list[fletching._violation.Violation]:
    """
    What is wrong with a dictionary and with those of its masks. No Exception leaves it,
    whatever the values do, and no device memory is read.
    """

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
    called on any thread. It lives as long as the process.
    """

class AsyncConsumer:
    """The raw consumer of an async stream."""

    @staticmethod
    def create(notify: Callable[[], object]) -> AsyncConsumer: ...
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
    def state(self) -> int:
        """The number of a state of the consumer in docs/reference/async.md."""

    @property
    def device_type(self) -> int: ...

class AsyncProducer:
    """The raw producer of an async stream."""

    @staticmethod
    def start(
        handler: int,
        device_type: int,
        on_demand: Callable[[], object],
        on_stop: Callable[[], object],
        on_release: Callable[[], object],
    ) -> AsyncProducer: ...
    def schema(self, schema: Schema) -> bool: ...
    def push(self, batch: object) -> bool: ...
    def end(self) -> bool: ...
    def fail(self, code: int, text: str) -> None: ...
    @property
    def state(self) -> int:
        """The number of a state of the producer in docs/reference/async.md."""

    @property
    def demand(self) -> int: ...

def from_arrow(object: object) -> DeviceArray | Array | DeviceArrayStream | ArrayStream | Schema:
    """What an object has by the Arrow PyCapsule protocols."""
