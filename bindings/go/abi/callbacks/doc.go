// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package callbacks calls the callbacks of the structs of package abi and lets C call Go. It requires
// cgo.
//
// # Go calls C
//
// Call<Struct><Field> calls one callback of a struct. Release<Struct> releases a struct. Each costs one
// cgo call. A struct may be in C memory, or in Go memory since it contains no Go pointers. Strings are
// addresses of C memory or of pinned Go memory.
//
// # C calls Go
//
// Each callback has one C function, <Struct><Field>Stub, which is valid for the whole process lifetime.
// It finds the Go value through the handle in the private_data field of its struct (manager_ctx in
// DLPack): see [NewHandle]. The functions of DLPackExchangeAPI receive no struct. They call the value
// passed to [SetDLPackExchangeAPI].
//
// A panic in Go never reaches C. The stub returns the failure value of the callback's contract: EIO, -1, NULL, or no
// value. Where the struct has get_last_error, or the callback takes an error argument, the panic's message is reported
// there. [OnPanic] observes every panic. A method must not call runtime.Goexit, and so must not call FailNow of package
// testing.
//
// # Threads
//
// All functions may be called from any goroutine, and the stubs from any thread. The documentation of
// the fields says how access to a struct must be synchronized.
package callbacks
