"""Hostile values in dictionaries: `check` names the violation and raises no exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from cuda_array_interface_vectors import ATTRIBUTE
from fletching import check_cuda_array_interface as check

KEYS = ("shape", "typestr", "data", "version", "strides", "descr", "mask", "stream")


class Typestr(NamedTuple):
    """A subclass of tuple, like the parts of a type string."""

    order: str
    kind: str
    number: int | None


def touch(*_: object) -> Any:
    raise RuntimeError("touched")


TOUCHES = """
    __getattr__ __len__ __iter__ __next__ __index__ __int__ __bool__ __hash__ __eq__ __ne__ __lt__
    __gt__ __le__ __ge__ __contains__ __getitem__ __repr__ __str__ __format__ __add__ __radd__
    __mul__ __rmul__ __neg__ __abs__ keys items values get copy encode split
"""


def raising(base: type) -> Any:
    """Returns a subclass that raises in every special method and common method."""
    methods = {**dict.fromkeys(TOUCHES.split(), touch), "__class__": property(touch)}
    return type(f"Raising{base.__name__.capitalize()}", (base,), methods)


Raising, RaisingDict, RaisingTuple = raising(object), raising(dict), raising(tuple)
RaisingList, RaisingText, RaisingInt = raising(list), raising(str), raising(int)


class RaisingMeta(type):
    __name__: Any = property(touch)

    def __instancecheck__(cls, _: object) -> bool:
        raise RuntimeError("touched")

    def __subclasscheck__(cls, _: object) -> bool:
        raise RuntimeError("touched")


class WithRaisingMeta(metaclass=RaisingMeta):
    pass


class WrongClass:
    """Reports a wrong class."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind


class SameHash:
    """A key that cannot be compared with another key of the same hash."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __hash__(self) -> int:
        return hash(self._name)

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("compared")


class Text(str):
    """A str with an unusual comparison."""

    def __eq__(self, _: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


class Index:
    """An integer through `__index__`, which may return something else."""

    def __init__(self, give: Callable[[], Any]) -> None:
        self._give = give

    def __index__(self) -> int:
        number: int = self._give()
        return number


class Recursing:
    def __index__(self) -> int:
        return self.__index__()


class Masked:
    """A mask that returns a new dictionary each time, which contains a mask again."""

    asked = 0

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        Masked.asked += 1
        return good(mask=Masked())


def good(**changes: object) -> dict[str, object]:
    interface = {"shape": (3,), "typestr": "<f4", "data": (4096, False), "version": 3}
    return {**interface, **changes}


def rules(interface: object) -> list[str]:
    """Returns the names of the violated rules. Every field of a violation is a plain str."""
    found = check(interface)
    for violation in found:
        assert all(
            type(part) is str and part.isascii() and part.isprintable() for part in violation
        )
        assert len(str(violation)) < 400
    return [violation.rule.partition(".")[2] for violation in found]


HOSTILE: dict[str, Callable[[], object]] = {
    "raising": Raising,
    "raising tuple": lambda: RaisingTuple((1, Raising())),
    "raising pair": lambda: RaisingTuple((Raising(), Raising())),
    "raising text": lambda: RaisingText("<q4"),
    "raising list": lambda: RaisingList([Raising()]),
    "raising dict": lambda: RaisingDict({Raising: Raising()}),
    "raising type": lambda: Raising,
    "instance of raising metaclass": WithRaisingMeta,
    "class of raising metaclass": lambda: WithRaisingMeta,
    "wrong class": lambda: WrongClass(dict),
    "wrong class tuple": lambda: WrongClass(tuple),
    "wrong class text": lambda: WrongClass(str),
    "wrong class integer": lambda: WrongClass(int),
    "index that raises": lambda: Index(lambda: 1 // 0),
    "index that is text": lambda: Index(lambda: "1"),
    "index that recurses": Recursing,
    "parts of a type string": lambda: Typestr("<", "?", None),
    "index in a tuple": lambda: (Index(lambda: 1 // 0), False),
    "strange name": type("\u202e\n" * 1000, (), {}),
    "strange text": lambda: "\u202e\u00e4",
    "unprintable": lambda: "\x00\n\udfff" * 1000,
    "huge number": lambda: 10**100_000,
    "huge numbers": lambda: (-(10**100_000),) * 1000,
    "many numbers": lambda: (2**63,) * 100_000,
    "not a number": lambda: float("nan"),
}


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("key", KEYS)
def test_check_hostile_value(key: str, value: str) -> None:
    found = check(good(**{key: HOSTILE[value]()}))
    assert found and {violation.key.partition(".")[0] for violation in found} <= {key, "data"}
    rules(good(**{key: HOSTILE[value]()}))


@pytest.mark.parametrize("value", HOSTILE)
def test_check_hostile_dictionary(value: str) -> None:
    assert rules(HOSTILE[value]()) in (["dictionary"], ["required-keys"])


@pytest.mark.parametrize("value", HOSTILE)
def test_check_hostile_field(value: str) -> None:
    hostile = HOSTILE[value]()
    for field in (hostile, ("x", hostile), ("x", "<f4", hostile), ("x", "<f4", (hostile,))):
        assert rules(good(descr=[field])) in (["descr-list"], ["descr-size"])
    for field in ((hostile, "<f4"), ((hostile, "x"), "<f4")):
        # Any str is a valid name.
        wrong = [] if issubclass(type(hostile), str) else ["descr-list"]
        assert rules(good(descr=[field])) == wrong


def test_check_reads_base_values_of_subclasses() -> None:
    interface = RaisingDict(
        good(
            shape=RaisingTuple((RaisingInt(3),)),
            typestr=RaisingText("<f4"),
            strides=RaisingTuple((RaisingInt(4),)),
            descr=RaisingList([RaisingTuple((RaisingText(""), RaisingText("<f4")))]),
            version=RaisingInt(3),
            stream=RaisingInt(0),
        )
    )
    assert rules(interface) == ["stream-zero"]


def test_check_does_not_compare_keys() -> None:
    assert rules({SameHash(name): 1 for name in KEYS}) == ["required-keys"]
    assert rules({**good(), Text("stream"): 0}) == ["stream-zero"]


def test_check_calls_index() -> None:
    assert rules(good(shape=(Index(lambda: 3),), stream=Index(lambda: 7))) == []
    assert rules(good(stream=Index(lambda: 0))) == ["stream-zero"]


def test_check_stops_at_nested_masks() -> None:
    assert rules(good(mask=Masked())) == ["mask-nesting"]
    assert Masked.asked == 4


def test_check_raising_mask_is_violation() -> None:
    class Raising:
        @property
        def __cuda_array_interface__(self) -> dict[str, object]:
            raise OSError("no device")

    assert ATTRIBUTE == "__cuda_array_interface__"
    assert rules(good(mask=Raising())) == ["mask-object"]


def test_check_stops_at_recursive_fields() -> None:
    loop: list[object] = []
    loop.append(("x", loop))
    assert rules(good(descr=loop)) == ["descr-list"]
    doubled: list[object] = [("x", "<f4")]
    for _ in range(30):
        doubled = [("a", doubled), ("b", doubled)]
    assert rules(good(descr=doubled)) == ["descr-list"]
    deep: list[object] = [("x", "<f4")]
    for _ in range(100_000):
        deep = [("x", deep)]
    assert rules(good(descr=deep)) == ["descr-list"]
    while deep:  # one level at a time: freeing all levels at once needs a deep stack
        deep = deep.pop()[1] if type(deep[0][1]) is list else []  # type: ignore[index]


def test_check_limits_field_count_and_depth() -> None:
    for count, broken in ((4096, []), (4097, ["descr-list"])):
        assert rules(good(typestr="|V0", descr=[("x", "|V0")] * count)) == broken
    nested: list[object] = [("x", "<f4")]
    for _ in range(32):
        nested = [("x", nested)]
    assert rules(good(descr=nested)) == []
    assert rules(good(descr=[("x", nested)])) == ["descr-list"]


def test_check_long_shapes() -> None:
    class Mask:
        __cuda_array_interface__ = good(shape=(3,) * 1000)

    interface = good(shape=(2,) * 1000, mask=Mask())
    assert rules(interface) == ["data-extent", "mask-shape", "data-extent"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_check_passes_on_base_exceptions(error: type[BaseException]) -> None:
    def interrupt() -> int:
        raise error

    with pytest.raises(error):
        check(good(stream=Index(interrupt)))
