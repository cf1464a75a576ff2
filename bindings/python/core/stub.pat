# What the stub has instead of what nanobind finds.
DeviceArray.__getattr__:
    \from typing_extensions import CapsuleType
    def __arrow_c_array__(self, requested_schema: CapsuleType | None = None) -> tuple[CapsuleType, CapsuleType]:
        """Only where the CPU can read the data. It waits for the event."""

DeviceArrayStream.__getattr__:
    def __arrow_c_stream__(self, requested_schema: CapsuleType | None = None) -> CapsuleType:
        """Only where the CPU can read the batches."""

# Every class has one.
\.__repr__:

