// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

func ExampleSchemaBuilder() {
	builder := fletching.SchemaBuilder{
		Format: "c", Name: "word", Flags: abi.FlagNullable, Metadata: fletching.Metadata{{Key: "language", Value: "en"}},
		Dictionary: &fletching.SchemaBuilder{Format: "u"},
	}
	var raw abi.ArrowSchema // in a real program the address comes from C
	if err := must(builder.Build()).Export(unsafe.Pointer(&raw)); err != nil {
		panic(err)
	}
	schema := must(fletching.ImportSchema(unsafe.Pointer(&raw)))
	defer schema.Close()
	language, _ := must(schema.Metadata()).Get("language")
	fmt.Println(schema.Name(), schema.Format(), schema.Dictionary().Format(), schema.Flags() == abi.FlagNullable, language)

	changed := must(schema.Root().Builder()) // a copy
	changed.Dictionary.Format = "U"
	fmt.Println(builder.CheckType(&changed))
	// Output:
	// word c u true en
	// field "dictionary": expected format "u", got "U"
}

func ExampleMetadata_Encode() {
	block := must(fletching.Metadata{{Key: "k", Value: "v"}}.Encode())
	fmt.Println(len(block), must(fletching.DecodeMetadata(block)))
	// Output: 14 [{k v}]
}

// Creates an error for a stream to yield.
func ExampleNewError() {
	cause := errors.New("disk full")
	err := fletching.NewError(syscall.ENOSPC, "spill: "+cause.Error(), cause)
	fmt.Println(err.Error(), errors.Is(err, syscall.ENOSPC), errors.Is(err, cause), len(err.Unwrap()))
	// Output: spill: disk full true true 2
}

// Prints where an array was created that was never closed, during development.
func ExampleOnLeak() {
	found := make(chan fletching.Leak, 1000)
	fletching.OnLeak(func(leak fletching.Leak) { found <- leak })
	fletching.TraceOwners(true)
	defer fletching.OnLeak(nil)
	defer fletching.TraceOwners(false)
	_ = must(fletching.FromValues([]int32{1})) // never closed
	runtime.GC()
	for leak := range found {
		if strings.Contains(leak.Stack, "ExampleOnLeak") {
			fmt.Println(leak.Struct, fletching.Leaks() > 0)
			return
		}
	}
	// Output: array true
}
