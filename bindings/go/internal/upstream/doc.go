// SPDX-License-Identifier: Apache-2.0

// Package upstream declares the interfaces with cgo from arrow/c/abi.h of the pinned pyarrow wheel, for
// the test that compares package abi with them. It needs that header, and therefore the build tag
// fletching_upstream:
//
//	CGO_CFLAGS="-I$FLETCHING_UPSTREAM_INCLUDE" go test -tags fletching_upstream ./internal/upstream
package upstream
