// SPDX-License-Identifier: Apache-2.0

// A program outside the repository that contains two versions of the module, and the core as a C project vendors it:
// test-package.
package main

// #cgo linux LDFLAGS: -ldl
// #include "fletching_core.h"
import "C"

import (
	"fmt"

	first "github.com/fletching/fletching/bindings/go"
	second "outside/other"
)

func main() {
	one, err := (&first.ArrayBuilder{Length: 1}).Build(nil)
	two, other := (&second.ArrayBuilder{Length: 2}).Build(nil)
	fmt.Println(one.Length(), two.Length(), err, other, C.GoString(C.FletchingVersion()))
	one.Close()
	two.Close()
	fmt.Println(first.PendingReleases().Pending, second.PendingReleases().Pending)
}
