"""Javadoc of the struct classes: the parameters and results of their methods."""

from __future__ import annotations

from ...reading.types import Argument, Callback, FixedArray, Pointer, StructType, Type
from ...render import Filters
from ...spec.model import Field
from ...spec.operations import Counted
from ...spelling import contract_facts, field_facts, pascal
from .names import camel, is_address, is_void, unsigned_bits
from .text import javadoc

_STRUCT = {"jna": "the address of the struct", "ffm": "the struct, with its size"}
_NULL = {"jna": "null", "ffm": "{@code MemorySegment.NULL}"}

# By argument name, which has the same meaning in every callback; for structs see `_argument`.
ARGUMENTS = {
    "n": "the number of additional batches",
    "stream_schema": "the schema of the batches, which the callback may move out",
    "task": "the task of the next batch",
    "metadata": "the pairs, encoded as in {@code ArrowSchema.metadata}",
    "code": "the errno value",
    "message": "the description of the error",
    "prototype": "the tensor with the type, shape and device of the new one",
    "error_ctx": "the first argument of {@code setError}",
    "set_error": "the function that reports an error: its context, kind and text",
    "py_object": "the Python object",
    "tensor": "the tensor to convert",
    "out_py_object": "the memory for the address of the Python object",
    "device_type": "the type of the device",
    "device_id": "the number of the device",
    "out_current_stream": "the memory for the stream handle",
}


def getter_doc(field: Field, flavor: str) -> str:
    array = field.type if isinstance(field.type, FixedArray) else None
    tags = [_param("struct", _STRUCT[flavor])]
    if array:
        tags.append(_param("index", f"the index of the element, from 0 to {array.count - 1}"))
    if isinstance(field.type, StructType):
        result = "the address of the field" if flavor == "jna" else "the segment of the field"
    else:
        result = _got(array.of if array else field.type, field, flavor)
    return javadoc([field.doc, field_facts(field)], 2, [*tags, f"@return {result}"])


def _got(type_: Type, field: Field, flavor: str) -> str:
    if isinstance(type_, Callback):
        function = f"the function, for {{@link {pascal(field.name)}#invoke}}"
        return f"{function}; {_NULL[flavor]} for NULL"
    if is_address(type_):
        size = ", without a size" if flavor == "ffm" else ""
        return f"the pointer{size}; {_NULL[flavor]} for NULL"
    return f"the number{_width(type_, 'in {@code %s}')}"


def _width(type_: Type, widened: str) -> str:
    """Returns the range of an unsigned C number in its Java type; empty for a signed number."""
    bits, java = unsigned_bits(type_)
    if bits == 0:
        return ""
    if java:
        return f", unsigned {widened % java}"
    return ", unsigned: see {@link Long#toUnsignedString(long)}"


def setter_doc(field: Field, flavor: str) -> str:
    array = field.type if isinstance(field.type, FixedArray) else None
    type_ = array.of if array else field.type
    tags = [_param("struct", _STRUCT[flavor])]
    if array:
        tags.append(_param("index", f"the index of the element, from 0 to {array.count - 1}"))
    bits, java = unsigned_bits(type_)
    if isinstance(type_, Callback):
        value = (
            f"the function, such as a {{@link {pascal(field.name)}#stub}}; {_NULL[flavor]} for NULL"
        )
    elif is_address(type_):
        owner = "" if field.owned_by == "none" else f", to memory that the {field.owned_by} owns"
        value = f"the pointer{owner}; {_NULL[flavor]} for NULL"
    elif bits and java:
        value = f"the number, from 0 to {2**bits - 1}"
    else:
        value = f"the number{_width(type_, '')}"
    tags.append(_param("value", value))
    if bits and java:
        tags.append("@throws IllegalArgumentException if the value does not fit into the field")
    return javadoc(f"Writes the value that {{@link #get{pascal(field.name)}}} reads.", 2, tags)


def text_doc(field: Field, flavor: str) -> str:
    text = f"Returns the text that {{@link #get{pascal(field.name)}}} points to."
    text += " Replaces invalid UTF-8."
    return javadoc(text, 2, [_param("struct", _STRUCT[flavor]), "@return the text, null for NULL"])


def entry_doc(entry: Counted, flavor: str) -> str:
    if isinstance(entry.type, Pointer) and isinstance(entry.type.to, StructType):
        result = "the struct that the entry points to"
    else:
        result = _got(entry.type, entry.field, flavor)
    index = f"the index of the entry, from 0 to {{@code {entry.count.name}}} - 1"
    tags = [
        _param("struct", _STRUCT[flavor]),
        _param("index", index),
        f"@return {result}",
        "@throws IndexOutOfBoundsException for another index",
    ]
    return javadoc(f"Returns an entry of {{@link #get{pascal(entry.field.name)}}}.", 2, tags)


def sized_entry_doc(entry: Counted) -> str:
    text = f"Returns an entry of {{@link #get{pascal(entry.field.name)}}} with a size."
    index = f"the index of the entry, from 0 to {{@code {entry.count.name}}} - 1"
    tags = [
        _param("struct", _STRUCT["ffm"]),
        _param("index", index),
        _param("size", "the size in bytes; 0 allows any address"),
        "@return the memory that the entry points to",
        "@throws IndexOutOfBoundsException for another index",
    ]
    return javadoc(text, 2, tags)


def plain_doc(text: str, indent: int, *tags: str) -> str:
    return javadoc(text, indent, [f"@{tag}" for tag in tags])


def struct_tag(flavor: str) -> str:
    return f"param struct {_STRUCT[flavor]}"


# --- Callbacks ---------------------------------------------------------------------------------


def _param(name: str, text: str) -> str:
    return f"@param {name} {text}"


def _argument(argument: Argument, nullable: tuple[str, ...], flavor: str) -> str:
    if argument.name == "self":
        text = "the struct that contains the callback"
    elif argument.name == "out":
        to = argument.type.to if isinstance(argument.type, Pointer) else None
        text = "the memory for the address of the tensor"
        if isinstance(to, StructType):
            text = f"the memory of the {{@code {to.name}}}, which the callback fills"
    else:
        text = ARGUMENTS.get(argument.name, f"{{@code {argument.name}}} of the C callback")
    if argument.name in nullable:
        text += f"; may be {_NULL[flavor]}"
    return _param(camel(argument.name), text)


def _called(field: Field, flavor: str) -> list[str]:
    """Returns the tags for the arguments and the result of a callback."""
    callback, contract = field.type, field.contract
    assert isinstance(callback, Callback) and contract
    tags = [_argument(a, contract.nullable, flavor) for a in callback.arguments]
    return tags if is_void(callback.returns) else [*tags, f"@return {contract.returns}"]


def callback_doc(field: Field) -> str:
    assert field.contract is not None  # ensured by the semantic checks
    return javadoc([field.doc, " ".join(contract_facts(field.contract))], 2)


def called_doc(field: Field, flavor: str) -> str:
    return javadoc(f"Called as {{@link {pascal(field.name)}}}.", 4, _called(field, flavor))


def from_c_doc(field: Field, flavor: str) -> str:
    size = " Pointers have no size; use {@code at} of their struct." if flavor == "ffm" else ""
    return javadoc(f"Receives the calls from C.{size}", 4, _called(field, flavor))


def stub_doc() -> str:
    text = (
        "Creates a C function that calls {@code callback}. It is never freed, so create one and"
        " find the object of a struct by its private_data. An exception of the callback is logged,"
        " and C receives the callback's failure value."
    )
    tags = [
        _param("callback", "receives the calls, on any thread"),
        "@return the address of the function",
    ]
    return javadoc(text, 4, tags)


def invoke_doc(field: Field, flavor: str) -> str:
    tags = [_param("function", "the address of the function"), *_called(field, flavor)]
    tags.append("@throws IllegalStateException if the function is NULL")
    return javadoc("Calls the C function at {@code function}.", 4, tags)


def invoke_text_doc(field: Field, flavor: str) -> str:
    tags = [_param("function", "the address of the function"), *_called(field, flavor)[:-1]]
    tags += [
        "@return the text, null for NULL",
        "@throws IllegalStateException if the function is NULL",
    ]
    return javadoc("Calls the function and returns its text. Replaces invalid UTF-8.", 4, tags)


FILTERS: Filters = {
    "called_doc": called_doc,
    "callback_doc": callback_doc,
    "entry_doc": entry_doc,
    "getter_doc": getter_doc,
    "invoke_doc": invoke_doc,
    "invoke_text_doc": invoke_text_doc,
    "plain_doc": plain_doc,
    "setter_doc": setter_doc,
    "sized_entry_doc": sized_entry_doc,
    "stub_doc": lambda _: stub_doc(),
    "struct_tag": struct_tag,
    "text_doc": text_doc,
    "from_c_doc": from_c_doc,
}
