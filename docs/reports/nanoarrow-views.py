"""A view array that nanoarrow has built ends the process when it is exported."""

import nanoarrow as na

views = na.c_array(["longer than twelve bytes"], na.string_view())
views.__arrow_c_array__()
