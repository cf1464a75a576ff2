"""The functions of libfletching_oracle (tests/oracle/oracle.h), built with upstream's headers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from libraries import declare, load

_library = load("libfletching_oracle.so")
_message = ctypes.create_string_buffer(1024)


class _Check:
    """A function of the oracle whose last arguments are message and capacity. Returns 0 on success.

    Calling it returns the oracle's line, or None.
    """

    def __init__(self, name: str, *arguments: type) -> None:
        self._function = declare(_library, name, c_int, *arguments, c_char_p, c_size_t)

    def __call__(self, *arguments: object) -> str | None:
        if self._function(*arguments, _message, len(_message)) == 0:
            return None
        return _message.value.decode("utf-8", "backslashreplace")


check_struct = _Check("FletchingOracleCheckStruct", c_char_p, c_int64, c_int64)
check_field_names = _Check("FletchingOracleCheckFieldNames", c_char_p, c_char_p)
check_field = _Check("FletchingOracleCheckField", c_char_p, c_char_p, c_int64, c_int64)
check_constant = _Check("FletchingOracleCheckConstant", c_char_p, c_int64)
check_constant_names = _Check("FletchingOracleCheckConstantNames", c_char_p)
check_enumerators = _Check("FletchingOracleCheckEnumerators", c_char_p, c_char_p)
check_callback_names = _Check("FletchingOracleCheckCallbackNames", c_char_p, c_char_p)
check_signature = _Check("FletchingOracleCheckSignature", c_char_p, c_char_p, c_char_p)
check_read = _Check("FletchingOracleCheckRead", c_char_p, c_char_p, c_int32, c_uint64)
check_written = _Check("FletchingOracleCheckWritten", c_char_p, c_void_p)
call = _Check("FletchingOracleCall", c_char_p, c_char_p, c_int32, c_void_p)
end_call = _Check("FletchingOracleEndCall", c_uint64)

size = declare(_library, "FletchingOracleSize", c_int64, c_char_p)
fill = declare(_library, "FletchingOracleFill", c_int, c_char_p, c_void_p)
canary = declare(_library, "FletchingOracleCanary", c_uint64, c_char_p, c_char_p, c_int32)
variant_count = declare(_library, "FletchingOracleVariantCount", c_int32)
argument_count = declare(_library, "FletchingOracleArgumentCount", c_int32, c_char_p, c_char_p)
saw_argument = declare(
    _library, "FletchingOracleSawArgument", None, c_char_p, c_char_p, c_int32, c_uint64
)
expected_result = declare(_library, "FletchingOracleExpectedResult", c_uint64)
install = declare(_library, "FletchingOracleInstall", c_int, c_char_p, c_void_p)
begin_call = declare(
    _library, "FletchingOracleBeginCall", None, c_char_p, c_char_p, c_int32, c_void_p
)
argument = declare(_library, "FletchingOracleArgument", c_uint64, c_int32)

_struct_count = declare(_library, "FletchingOracleStructCount", c_int32)
_struct_name = declare(_library, "FletchingOracleStructName", c_char_p, c_int32)
_callback_count = declare(_library, "FletchingOracleCallbackCount", c_int32, c_char_p)
_callback_name = declare(_library, "FletchingOracleCallbackName", c_char_p, c_char_p, c_int32)


def struct_names() -> list[str]:
    """Returns the structs that upstream declares, in its order."""
    return [_struct_name(i).decode() for i in range(_struct_count())]


def callback_names(struct: str) -> Iterator[str]:
    """Yields the callbacks that upstream declares in the struct."""
    for i in range(_callback_count(struct.encode())):
        yield _callback_name(struct.encode(), i).decode()
