// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package callbacks calls the callbacks of the structs of package abi, and lets C call Go. It needs
// cgo.
//
// # Go calls C
//
// For every callback there is a function Call<Struct><Field>, which calls the function in the struct, and
// for every struct that is released Release<Struct>. Each costs one cgo call. Structs may be in Go
// memory, which has no Go pointers in it, or in C memory; texts are addresses of C memory or of pinned
// Go memory.
//
// # C calls Go
//
// For every callback there is one C function, <Struct><Field>Stub, which lives as long as the process.
// It finds the Go value by the handle in private_data (DLPack: manager_ctx) of its struct: see
// [NewHandle]. The functions of DLPackExchangeAPI get no struct: they call the value that
// [SetDLPackExchangeAPI] was called with.
//
// A panic in Go never reaches C. The stub returns what the callback's contract has for a failure: EIO,
// -1, NULL, or nothing. Where the struct has get_last_error, or an argument that takes an error, it gets
// the text of the panic. [OnPanic] sees every panic. A method must not call runtime.Goexit, and so no
// FailNow of package testing.
//
// # Threads
//
// All functions may be called from any goroutine, and the stubs from any thread. Access to a struct
// follows the documentation of its fields.
package callbacks
