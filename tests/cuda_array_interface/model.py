# SPDX-License-Identifier: Apache-2.0
"""A reference model of the CUDA Array Interface checks, driven by the spec's data.

    Model(load_spec(ROOT).cuda_array_interface).check(dictionary)

It is written from the published text and shares no code with the packages.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from fletching_generator.cuda_array_interface.dictionaries import DictionaryInterface, Kind

WRONG: Any = object()  # a value of another type than the interface demands
BEYOND = 2**64  # the first number that is not an address
BYTES_OF = {"bytes": 1, "characters": 4}


class Violation(NamedTuple):
    rule: str  # "cuda-array-interface.stream-zero"
    key: str  # "stream"; "mask.stream" in the dictionary of the mask; "" for the whole
    severity: str  # "error" or "warning"


class Typestr(NamedTuple):
    order: str  # the name in the spec, "little_endian"
    kind: Kind
    number: int | None  # None if the text has no number
    item_bytes: int


@dataclass(frozen=True)
class Array:
    """The content of a dictionary. None is a missing value; WRONG is one of the wrong type."""

    readable: bool = True
    missing: tuple[str, ...] = ()  # required keys
    given: tuple[str, ...] = ()  # keys whose value is not None
    judged_as: int = 0  # the version whose rules apply
    shape: Any = None
    typestr: Any = None
    type: Typestr | None = None
    data: Any = None  # address and read-only flag
    version: Any = None
    strides: Any = None
    descr: Any = None  # the bytes of all fields
    mask: Any = None
    stream: Any = None
    too_many_masks: bool = False

    @property
    def pointer(self) -> int | None:
        return self.data[0] if isinstance(self.data, tuple) else None

    @property
    def elements(self) -> int | None:
        if not isinstance(self.shape, tuple) or any(size < 0 for size in self.shape):
            return None
        return prod(self.shape)


class Model:
    def __init__(self, interface: DictionaryInterface) -> None:
        self.spec = interface
        self.keys = {key.name: key for key in interface.keys}
        self.kinds = {kind.char: kind for kind in interface.typestr.kinds}
        self.orders = {order.char: order.name for order in interface.typestr.orders}
        units = "|".join(unit.text for unit in interface.typestr.units)
        self.grammar = re.compile(
            rf"([{''.join(self.orders)}])([{''.join(self.kinds)}])(0|[1-9][0-9]{{0,9}})?"
            rf"(\[(?:[1-9][0-9]{{0,8}})?(?:{units})\])?"
        )

    def check(self, interface: object) -> list[Violation]:
        """The violations of a dictionary and then of its masks, each in the order of the spec."""
        found: list[Violation] = []
        path: list[str] = []
        array: Any = self.read(interface, 0)
        while isinstance(array, Array):
            for check in self.spec.checks:
                if check.since <= array.judged_as and getattr(self, check.name)(array):
                    key = ".".join([*path, check.key] if check.key else path)
                    found.append(Violation(check.id, key, check.severity))
            array = array.mask
            path.append("mask")
        return found

    # --- The checks: whether an array breaks the rule of the name --------------------------------

    def dictionary(self, array: Array) -> bool:
        return not array.readable

    def required_keys(self, array: Array) -> bool:
        return bool(array.missing)

    def shape_tuple(self, array: Array) -> bool:
        return array.shape is WRONG

    def shape_sizes(self, array: Array) -> bool:
        return isinstance(array.shape, tuple) and array.elements is None

    def typestr_string(self, array: Array) -> bool:
        return array.typestr is WRONG

    def typestr_grammar(self, array: Array) -> bool:
        return isinstance(array.typestr, str) and array.type is None

    def typestr_order(self, array: Array) -> bool:
        type_ = array.type
        if type_ is None or type_.order != "irrelevant":
            return False
        return type_.kind.ordered and type_.item_bytes > 1

    def typestr_size(self, array: Array) -> bool:
        if array.type is None or array.type.number is None:
            return False
        sizes = array.type.kind.sizes
        return bool(sizes) and array.type.number not in sizes

    def data_pair(self, array: Array) -> bool:
        return array.data is WRONG

    def data_pointer(self, array: Array) -> bool:
        pointer = array.pointer
        if pointer is None or 0 < pointer < BEYOND:
            return False
        return pointer != 0 or bool(array.elements and array.type and array.type.item_bytes)

    def data_zero_size(self, array: Array) -> bool:
        return bool(array.pointer) and array.elements == 0

    def data_extent(self, array: Array) -> bool:
        pointer, shape, strides = array.pointer, array.shape, array.strides
        size = array.type.item_bytes if array.type else 0
        if not array.elements or not pointer or not 0 < pointer < BEYOND or not size:
            return False
        first, end = pointer, pointer + size
        if strides is None:
            end = pointer + size * array.elements
        elif strides is not WRONG and len(strides) == len(shape):
            steps = [stride * (n - 1) for stride, n in zip(strides, shape, strict=True)]
            first += sum(step for step in steps if step < 0)
            end += sum(step for step in steps if step > 0)
        return strides is not WRONG and (first < 0 or end > BEYOND)

    def version_integer(self, array: Array) -> bool:
        return array.version is WRONG

    def version_known(self, array: Array) -> bool:
        return isinstance(array.version, int) and array.version != array.judged_as

    def version_keys(self, array: Array) -> bool:
        return any(self.keys[name].since > array.judged_as for name in array.given)

    def strides_tuple(self, array: Array) -> bool:
        return array.strides is WRONG

    def strides_length(self, array: Array) -> bool:
        both = isinstance(array.strides, tuple) and isinstance(array.shape, tuple)
        return both and len(array.strides) != len(array.shape)

    def descr_list(self, array: Array) -> bool:
        return array.descr is WRONG

    def descr_size(self, array: Array) -> bool:
        if not isinstance(array.descr, int) or array.type is None:
            return False
        return array.type.item_bytes != array.descr

    def mask_object(self, array: Array) -> bool:
        return array.mask is WRONG

    def mask_shape(self, array: Array) -> bool:
        mask = array.mask.shape if isinstance(array.mask, Array) else None
        if not isinstance(mask, tuple) or not isinstance(array.shape, tuple):
            return False
        pairs = zip(reversed(mask), reversed(array.shape), strict=False)
        fits = len(mask) <= len(array.shape) and all(size in (1, whole) for size, whole in pairs)
        return not fits

    def mask_nesting(self, array: Array) -> bool:
        return array.too_many_masks

    def stream_integer(self, array: Array) -> bool:
        return array.stream is WRONG

    def stream_zero(self, array: Array) -> bool:
        return array.stream in [stream.value for stream in self.spec.streams if not stream.allowed]

    def stream_handle(self, array: Array) -> bool:
        return isinstance(array.stream, int) and not 0 <= array.stream < BEYOND

    # --- Reading ---------------------------------------------------------------------------------

    def read(self, interface: object, depth: int) -> Array:
        """The content of a dictionary, `depth` masks below the first one."""
        newest = self.spec.version
        if not is_a(interface, dict):
            return Array(readable=False, judged_as=newest)
        items: Any = list(dict.items(interface))  # type: ignore[arg-type]
        entries = {text(key): value for key, value in items if text(key) in self.keys}

        def value(name: str, read: Any) -> Any:
            left_out = name not in entries or (entries[name] is None and self.keys[name].none)
            return None if left_out else read(entries[name])

        version = value("version", integer)
        known = isinstance(version, int) and 0 <= version <= newest
        judged_as = version if known else newest
        mask = value("mask", lambda said: [said]) if "mask" in self.keys else None
        masked = mask is not None and judged_as >= self.keys["mask"].since
        too_many_masks = masked and depth == self.spec.limits.masks
        typestr = value("typestr", lambda said: text(said) if is_a(said, str) else WRONG)
        return Array(
            missing=tuple(k for k, key in self.keys.items() if key.required and k not in entries),
            given=tuple(name for name in self.keys if entries.get(name) is not None),
            judged_as=judged_as,
            shape=value("shape", integers),
            typestr=typestr,
            type=self.parse(typestr) if isinstance(typestr, str) else None,
            data=value("data", pair),
            version=version,
            strides=value("strides", integers),
            descr=value("descr", self.fields),
            mask=self.mask(mask[0], depth) if mask and masked and not too_many_masks else None,
            stream=value("stream", integer),
            too_many_masks=too_many_masks,
        )

    def mask(self, value: object, depth: int) -> Any:
        try:
            interface = getattr(value, self.spec.attribute)
        except Exception:  # a foreign method can raise anything
            return WRONG
        return self.read(interface, depth + 1)

    def parse(self, typestr: str) -> Typestr | None:
        match = self.grammar.fullmatch(typestr)
        if match is None:
            return None
        kind, number = self.kinds[match[2]], int(match[3]) if match[3] else None
        counted = kind.no_number if number is None else number
        if counted is None or (match[4] and not kind.has_unit):
            return None
        size = (counted + 7) // 8 if kind.counts == "bits" else counted * BYTES_OF[kind.counts]
        if size > self.spec.limits.item_bytes:
            return None
        return Typestr(self.orders[match[1]], kind, number, size)

    def fields(self, value: object) -> Any:
        """The bytes that the fields of a description take, or WRONG."""
        todo: list[tuple[Any, int, int]] = [(value, 1, 0)]  # lists, their repetitions, their depth
        total = count = 0
        while todo:
            fields, times, depth = todo.pop()
            if not is_a(fields, list):
                return WRONG
            for field in list.copy(fields):
                count += 1
                parts = self.field(field)
                if parts is WRONG:
                    return WRONG
                type_, inner, repeats = parts
                if type_ is None:
                    todo.append((inner, times * repeats, depth + 1))
                else:
                    total += times * repeats * type_.item_bytes
                if count > self.spec.limits.fields or depth > self.spec.limits.lists:
                    return WRONG
        return total

    def field(self, value: object) -> Any:
        """Type, list of inner fields, and repetitions of one field, or WRONG."""
        parts = elements_of(value)
        if parts is None or len(parts) not in (2, 3):
            return WRONG
        names = elements_of(parts[0])
        titled = names is not None and len(names) == 2 and all(is_a(name, str) for name in names)
        if not is_a(parts[0], str) and not titled:
            return WRONG
        repeats = integers(parts[2]) if len(parts) == 3 else ()
        if repeats is WRONG or any(size < 0 for size in repeats):
            return WRONG
        if not is_a(parts[1], str):
            return None, parts[1], prod(repeats)
        type_ = self.parse(text(parts[1]))
        return WRONG if type_ is None else (type_, None, prod(repeats))


# Values of other libraries. Their types can override any method, so only the methods of the builtin
# types are called, and __index__ of a value that is not an int.


def is_a(value: object, kind: type) -> bool:
    return issubclass(type(value), kind)


def text(value: object) -> str:
    return str.__str__(value) if is_a(value, str) else ""


def elements_of(value: object) -> Sequence[object] | None:
    return list(tuple.__iter__(value)) if is_a(value, tuple) else None  # type: ignore[arg-type]


def integer(value: Any) -> Any:
    if type(value) is bool:
        return WRONG
    try:
        return int.__index__(operator.index(value))
    except Exception:  # a foreign method can raise anything
        return WRONG


def integers(value: object) -> Any:
    elements: Iterable[object] | None = elements_of(value)
    if elements is None:
        return WRONG
    numbers = [integer(element) for element in elements]
    return WRONG if any(number is WRONG for number in numbers) else tuple(numbers)


def pair(value: object) -> Any:
    parts = elements_of(value)
    if parts is None or len(parts) != 2 or type(parts[1]) is not bool:
        return WRONG
    pointer = integer(parts[0])
    return WRONG if pointer is WRONG else (pointer, parts[1])
