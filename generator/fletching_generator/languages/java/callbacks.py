"""Java callbacks: how C calls them, how they call C, and their results after an exception."""

from __future__ import annotations

from ...reading.types import Callback, Pointer, Scalar
from ...spec.model import Field, Struct
from ...spec.operations import reporter as reporter_of
from ...spelling import pascal
from .names import camel, constant, ffm_layout, is_address, is_void, java_type
from .text import Broken, Call, Node


def signature(callback: Callback, flavor: str, head: str, first: str = "") -> Call:
    """Returns a method with the callback's arguments; `head` names it, with {} for the result."""
    return Call(
        head.format(java_type(callback.returns, flavor)), _declared(callback, flavor, first)
    )


def _declared(callback: Callback, flavor: str, first: str = "") -> list[Node]:
    arguments: list[Node] = [first] if first else []
    return arguments + [f"{java_type(a.type, flavor)} {camel(a.name)}" for a in callback.arguments]


def declared(field: Field, flavor: str) -> Call:
    """Returns the method of `Callbacks` for the callback."""
    callback = _callback(field)
    return signature(callback, flavor, f"{{}} {camel(field.name)}")


def failure(field: Field) -> str:
    """Returns the contract's result for C if the callback throws, in the type of the result."""
    callback = _callback(field)
    if is_void(callback.returns) or is_address(callback.returns):
        return "null"
    value = "-1" if field.contract and field.contract.failure == -1 else "Failures.EIO"
    java = java_type(callback.returns, "ffm")
    return value if java == "int" else f"({java}) {value}"


def reporter(field: Field) -> str | None:
    """Returns the arguments for reporting an error: a function and its context."""
    found = reporter_of(_callback(field))
    return found and ", ".join(camel(argument.name) for argument in found)


def names(field: Field) -> str:
    """Returns the arguments as they are passed on: `self, out`."""
    return ", ".join(camel(a.name) for a in _callback(field).arguments)


def returns_text(field: Field) -> bool:
    returns = _callback(field).returns
    return isinstance(returns, Pointer) and returns.to == Scalar("char")


# --- JNA ---------------------------------------------------------------------------------------


def jna_stub(field: Field, struct: Struct, target: str) -> Call:
    """Returns the statement that creates the stub. JNA passes the arguments as objects."""
    callback = _callback(field)
    java = java_type(callback.returns, "jna")
    types = [java_type(a.type, "jna") for a in callback.arguments]
    sent: list[Node] = [f"({_boxed(name)}) a[{i}]" for i, name in enumerate(types)]
    values: list[Node] = [f'"{struct.name}.{field.name}"']
    if java != "void":
        values += [f"{java}.class", failure(field)]
    values += [Broken("a ->", Call(f"{target}.callback", sent))]
    values += [f"{name}.class" for name in types]
    return Call("return Abi.voidStub" if java == "void" else "return Abi.stub", values)


def _boxed(java: str) -> str:
    return {"int": "Integer", "Pointer": "Pointer"}.get(java, java.capitalize())


def jna_invocation(field: Field, struct: Struct) -> Node:
    callback = _callback(field)
    java = java_type(callback.returns, "jna")
    values: list[Node] = [f"{java}.class", "function", f'"{struct.name}.{field.name}"']
    values += [camel(argument.name) for argument in callback.arguments]
    return _returned(callback, "jna", Call("Abi.call", values))


# --- java.lang.foreign -------------------------------------------------------------------------


def ffm_descriptor(callback: Callback) -> Call:
    arguments: list[Node] = [ffm_layout(a.type) for a in callback.arguments]
    if is_void(callback.returns):
        return Call("FunctionDescriptor.ofVoid", arguments)
    return Call("FunctionDescriptor.of", [ffm_layout(callback.returns), *arguments])


def ffm_stub(field: Field, struct: Struct, target: str) -> Call:
    name = pascal(field.name)
    returned = "null" if is_void(_callback(field).returns) else failure(field)
    subject = f'"{struct.name}.{field.name}"'
    return Call("return Abi.stub", [subject, returned, f"{name}.class", target, "DESCRIPTOR"])


def ffm_invocation(field: Field) -> Node:
    callback = _callback(field)
    values: list[Node] = ["function", *(camel(a.name) for a in callback.arguments)]
    return _returned(callback, "ffm", Call(f"Calls.{constant(field.name)}.invokeExact", values))


# --- Both --------------------------------------------------------------------------------------


def dispatch(field: Field, flavor: str, is_last: bool) -> Call:
    """Returns the function that C calls for all structs. It calls the method of `Callbacks`."""
    own, *rest = names(field).split(", ")
    sent: list[Node] = [own if flavor == "jna" else f"at({own})", *rest]
    found = "take" if is_last else "find"
    call = Call(f"{found}({own}).{camel(field.name)}", sent)
    return Call(f"{pascal(field.name)}.stub", [Broken(f"({names(field)}) ->", call)])


def _returned(callback: Callback, flavor: str, call: Call) -> Node:
    java = java_type(callback.returns, flavor)
    return call if java == "void" else Broken(f"return ({java})", call)


def _callback(field: Field) -> Callback:
    assert isinstance(field.type, Callback)
    return field.type
