"""Shows arrays that arrow-java leaks when an import fails.

python arrow-java.py FOLDER-OF-JARS KIND, with JPype1. KIND: stream, child.
"""

import ctypes
import sys
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_void_p

import jpype

opens = "--add-opens=java.base/java.nio=ALL-UNNAMED"
jpype.startJVM(opens, classpath=[f"{sys.argv[1]}/*"])
c = jpype.JPackage("org.apache.arrow.c")
allocator = jpype.JClass("org.apache.arrow.memory.RootAllocator")()
alive = set()  # the arrays that are not released
kept = []


def pointer(kind, function):
    kept.append(kind(function))
    return ctypes.cast(kept[-1], c_void_p).value


def fill(address, words, release, **values):
    """Writes a struct with a release callback in the given word. Returns its number."""
    struct = (c_int64 * words).from_address(address)
    ctypes.memset(address, 0, 8 * words)
    for at, value in values.items():
        struct[int(at[1:])] = value

    def released(own):
        (c_int64 * words).from_address(own)[release] = 0
        alive.discard(number)

    number = len(kept)
    struct[release] = pointer(CFUNCTYPE(None, c_void_p), released)
    return number


def new(words):
    kept.append((c_int64 * words)())
    return ctypes.addressof(kept[-1])


def pointers(*addresses):
    kept.append((c_void_p * len(addresses))(*addresses))
    return ctypes.addressof(kept[-1])


def text(value):
    kept.append(ctypes.create_string_buffer(value))
    return ctypes.addressof(kept[-1])


def get_schema(_, out):
    fill(out, 9, 7, _0=text(b"i"))
    return 0


def get_next(_, out):
    alive.add(fill(out, 10, 8, _3=2, _5=pointers(None, new(4))))
    return 0


def import_stream():
    """A stream whose arrays are numbers, which arrow-java does not support."""
    getter = CFUNCTYPE(c_int, c_void_p, c_void_p)
    calls = pointer(getter, get_schema), pointer(getter, get_next)
    stream = new(5)
    last_error = pointer(CFUNCTYPE(c_char_p, c_void_p), lambda _: None)
    fill(stream, 5, 3, _0=calls[0], _1=calls[1], _2=last_error)
    with c.Data.importArrayStream(allocator, c.ArrowArrayStream.wrap(stream)) as reader:
        reader.loadNextBatch()


def import_child():
    """A struct array whose second child is NULL: a broken array, whose release must be called."""
    fields, schema, number, array = (new(9), new(9)), new(9), new(10), new(10)
    for field, name in zip(fields, (b"a", b"b"), strict=True):
        fill(field, 9, 7, _0=text(b"i"), _1=text(name))
    fill(schema, 9, 7, _0=text(b"+s"), _4=2, _5=pointers(*fields))
    fill(number, 10, 8, _0=1, _3=2, _5=pointers(None, new(4)))
    children = pointers(number, None)
    alive.add(fill(array, 10, 8, _0=1, _3=1, _4=2, _5=pointers(None), _6=children))
    with c.CDataDictionaryProvider() as provider:
        wrapped = c.ArrowArray.wrap(array), c.ArrowSchema.wrap(schema)
        c.Data.importVector(allocator, *wrapped, provider).close()


try:
    {"stream": import_stream, "child": import_child}[sys.argv[2]]()
except jpype.JException as error:
    print(error)
assert not alive, f"not released: {len(alive)} array"
