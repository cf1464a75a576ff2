"""A view array of pyarrow ends the process when nanoarrow.Array takes it."""

import nanoarrow as na
import pyarrow as pa

na.Array(pa.array(["longer than twelve bytes"], pa.string_view()))
