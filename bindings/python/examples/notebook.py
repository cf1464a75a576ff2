"""Passes a device array through NumPy, pyarrow, nanoarrow and polars and back. All steps share the
same memory, except that polars creates some. Needs numpy, pyarrow, nanoarrow and polars.

Prints: the way of the column: numpy -> fletching -> pyarrow -> nanoarrow -> polars -> fletching
"""

# %% NumPy: the memory that all steps share
import nanoarrow
import nanoarrow.device
import numpy
import polars
import pyarrow

import fletching

prices = numpy.array([1.5, 20.0, 99.0, 7.25])
address = prices.ctypes.data
print(prices, "at", hex(address))

# %% A device array: with a device, and with an event if the producer has one
array = fletching.from_dlpack(prices)
print(array)
assert array.buffers[1] == address
array.synchronize()
assert array.ready()

# %% NumPy again: read-only, unless you request writable memory and the producer allows it
view = array.to_numpy()
assert view.ctypes.data == address
assert not view.flags.writeable
array.to_numpy(writable=True)[0] = 2.5
assert prices[0] == view[0] == 2.5

# %% pyarrow imports it through __arrow_c_device_array__
column = pyarrow.array(array)
print(column.type, "sum", column.sum())
assert column.buffers()[1].address == address

# %% A pyarrow record batch as a device array: names, nulls and metadata are kept
names = pyarrow.array(["tea", None, "saffron", "rice"])
batch = pyarrow.RecordBatch.from_arrays([names, column], ["name", "price"])
batch = batch.replace_schema_metadata({"currency": "EUR"})
table = fletching.DeviceArray.from_arrow(batch)
print(table)
assert table.schema.metadata == {b"currency": b"EUR"}
assert table.column("name").null_count == 1

# %% A slice is a view: its columns begin at its offset
part = fletching.DeviceArray.from_arrow(batch.slice(1, 2))
assert part.column("price").to_numpy().tolist() == [20.0, 99.0]
assert part.column("price").buffers[1] == address

# %% nanoarrow, on the device and on the CPU
device = nanoarrow.device.c_device_array(table)
print("nanoarrow: device type", device.device_type_id, "of", len(table), "rows")
values = nanoarrow.Array(table.column("price"))
assert values.to_pylist() == prices.tolist()

# %% polars, from nanoarrow's array
frame = polars.DataFrame(fletching.DeviceArray.from_arrow(device))
print(frame)
dear = frame.filter(polars.col("price") > 5)
assert dear["name"].to_list() == [None, "saffron", "rice"]

# %% And back: a stream of batches, each a device array
stream = fletching.DeviceArrayStream.from_arrow(dear)
print(stream.schema)
back = [each.column("price") for each in stream]
assert numpy.concatenate([each.to_numpy() for each in back]).tolist() == [20.0, 99.0, 7.25]

# %% Every object keeps its data alive: the memory lives as long as the last of them
del prices, view, column, batch, table, part, device, values, array
assert back[0].to_numpy()[0] == 20.0

# %%
way = ["numpy", "fletching", "pyarrow", "nanoarrow", "polars", "fletching"]
print("the way of the column:", " -> ".join(way))
