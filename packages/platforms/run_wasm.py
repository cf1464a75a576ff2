"""Runs a WASI program: run_wasm.py PROGRAM [ARGUMENT...]. Exits with its status."""

import sys

import wasmtime

engine = wasmtime.Engine()
linker = wasmtime.Linker(engine)
linker.define_wasi()
store = wasmtime.Store(engine)
wasi = wasmtime.WasiConfig()
wasi.argv = sys.argv[1:]
wasi.inherit_stdout()
wasi.inherit_stderr()
store.set_wasi(wasi)
module = wasmtime.Module.from_file(engine, sys.argv[1])
start = linker.instantiate(store, module).exports(store)["_start"]
assert isinstance(start, wasmtime.Func)
try:
    start(store)
except wasmtime.ExitTrap as exit_status:
    sys.exit(exit_status.code)
