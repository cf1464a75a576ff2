# Replacements for parts of nanobind's stub.
# Protocols, so that from_arrow has the type that it returns.
^fletching\._core\.__prefix__$:
    \from typing import Any, Protocol, final
    from fletching._error import Error as Error

    class _HasDeviceArray(Protocol):
        def __arrow_c_device_array__(self, requested_schema: Any = ..., **kwargs: Any) -> tuple[Any, Any]: ...

    class _HasArray(Protocol):
        def __arrow_c_array__(self, requested_schema: Any = ...) -> tuple[Any, Any]: ...

    class _HasDeviceStream(Protocol):
        def __arrow_c_device_stream__(self, requested_schema: Any = ..., **kwargs: Any) -> Any: ...

    class _HasStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: Any = ...) -> Any: ...

    class _HasSchema(Protocol):
        def __arrow_c_schema__(self) -> Any: ...

_core\.from_arrow$:
    \from typing import overload
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

_core\.Error$:

DeviceArray.__arrow_c_array__$:
    \from typing_extensions import CapsuleType
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]:
        """Exists only if the CPU can read the data. Waits for the event."""

DeviceArray.__cuda_array_interface__$:
    \from typing import Any
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Exists only for CUDA memory of a type that NumPy has. Its stream waits for the event."""

DeviceArrayStream.__arrow_c_stream__$:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        """Exists only if the CPU can read the batches."""

# A method without a signature, and the function that it calls.
rray.__dlpack__$:
    \from typing_extensions import CapsuleType
    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> CapsuleType: ...

rray.__arrow_c_device_array__$:
    \from typing_extensions import CapsuleType
    def __arrow_c_device_array__(self, requested_schema: object | None = None, **kwargs: object) -> tuple[CapsuleType, CapsuleType]: ...

\._dlpack$:

Stream.__arrow_c_device_stream__$:
    \from typing_extensions import CapsuleType
    def __arrow_c_device_stream__(self, requested_schema: object | None = None, **kwargs: object) -> CapsuleType: ...

# Every class has one.
\.__repr__:

# A capsule of the module.
\.__dlpack_c_exchange_api__$:
    \from typing_extensions import CapsuleType
    __dlpack_c_exchange_api__: CapsuleType

# Used only for NumPy.
_ReadyTensor$:

