// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"fmt"
	"slices"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Warning is a rule that a foreign producer or consumer broke.
type Warning struct {
	// Rule is its id in docs/reference/rules, such as device-array.reserved-zero.
	Rule string

	// Message names the actual and the expected value.
	Message string
}

func (w Warning) String() string {
	return fmt.Sprintf("%s (rule %s)", w.Message, w.Rule)
}

// Options configures warnings, which are dropped by default.
type Options struct {
	// Strict turns warnings into the error EINVAL.
	Strict bool

	// OnWarning is called for each warning, on the reading goroutine, before the data is passed on.
	// It may be nil.
	OnWarning func(Warning)
}

func (o *Options) warn(rule, message string) error {
	if o.Strict {
		return brokenRule(rule, message)
	}
	if o.OnWarning == nil {
		return nil
	}
	return guarded(func() error {
		o.OnWarning(Warning{rule, message})
		return nil
	})
}

// checkBatch checks whether a stream of the promised device type may contain the batch.
func (o *Options) checkBatch(batch *abi.ArrowDeviceArray, promised abi.DeviceType) error {
	if found := batch.DeviceType; found != promised {
		message := fmt.Sprintf("batch: device_type differs from the stream's: expected %v, got %v",
			promised, found)
		if !replaces(found, promised) {
			return brokenRule("device-stream-result.accessible",
				message+", memory that the stream's devices may not access")
		}
		if err := o.warn("device-stream.one-device-type", message); err != nil {
			return err
		}
	}
	if batch.Reserved != [3]int64{} {
		return o.warn("device-array.reserved-zero",
			"ArrowDeviceArray.reserved: not zero: expected zeros; hint: fix the producer")
	}
	return nil
}

// replaces reports whether every device that can access memory of the promised type can also access
// memory of the found type.
func replaces(found, promised abi.DeviceType) bool {
	devices := promised.AccessibleFrom()
	if len(devices) == 0 {
		return false
	}
	memory := found.AccessibleFrom()
	for _, device := range devices {
		if !slices.Contains(memory, device) {
			return false
		}
	}
	return true
}
