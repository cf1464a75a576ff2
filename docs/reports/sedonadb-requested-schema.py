"""The method requires an object as requested_schema, where the protocol has a capsule."""

import sedonadb

frame = sedonadb.connect().sql("select 1 as a")
frame.__arrow_c_stream__(requested_schema=frame.__arrow_c_schema__())
