"""JAX tensors on the CPU, both ways. Run by ../test-more-peers: JAX is in build/more-peers."""

from __future__ import annotations

import gc
from typing import Any

import jax
import pyarrow
import pytest

from capsules import Produced
from fletching import Array, DeviceArray, from_dlpack


@pytest.mark.parametrize("kind", [Array, DeviceArray])
def test_jax_from_dlpack_reads_array(kind: Any) -> None:
    produced = Produced()
    taken = jax.dlpack.from_dlpack(kind.from_arrow(produced))
    assert (taken.dtype, taken.tolist()) == ("int32", [1, 2, 3])
    del taken
    gc.collect()
    assert "array" in produced.releases


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float16", "float32"])
def test_from_dlpack_imports_jax_array(dtype: str) -> None:
    """JAX arrays are immutable, so the imported arrays are read-only."""
    source = jax.numpy.arange(3, dtype=dtype)
    array = from_dlpack(source)
    assert array.buffers[1] == source.unsafe_buffer_pointer()
    del source
    gc.collect()
    assert array.to_numpy().tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="memory is read-only"):
        array.to_numpy(writable=True)


def test_from_dlpack_bfloat16_round_trips_as_arrow_opaque() -> None:
    array = from_dlpack(jax.numpy.arange(3, dtype="bfloat16"))
    assert pyarrow.array(array).type.type_name == "bfloat16"
    back = jax.dlpack.from_dlpack(array)
    assert (back.dtype, back.tolist()) == ("bfloat16", [0, 1, 2])
