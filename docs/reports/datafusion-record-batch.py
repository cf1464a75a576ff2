"""A record batch of a stream has the method, and the method fails."""

from datafusion import SessionContext

batch = next(iter(SessionContext().sql("select 1 as a").execute_stream()))
assert hasattr(batch, "__arrow_c_array__")
batch.__arrow_c_array__()
