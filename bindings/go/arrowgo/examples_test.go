// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/examples"
)

func TestEveryOperationHasExample(t *testing.T) { examples.Check(t, nil, nil) }
