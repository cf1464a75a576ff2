"""The part of rmm 26.10.0 that examples/pylibcudf_column.py uses."""

import cuda


class Stream:
    def __init__(self) -> None:
        self.handle = cuda.stream()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle
