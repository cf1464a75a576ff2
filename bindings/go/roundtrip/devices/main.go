// The program fletching_roundtrip_devices_go passes data of every backend of the reference producer, behind
// its gate, through Go (tests/roundtrip/README.md).
//
//	fletching_roundtrip_devices_go [--chain] [BACKEND...]
//
// --chain runs only the chain. Backends: those that are named, else all. Exit codes: 0 all cells are ok,
// 1 one is not, or there is no producer.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/fletching/fletching/bindings/go/roundtrip/cells"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

// One of each layout; devices.py has the same.
var cases = []string{"int32", "utf8", "utf8_view", "list", "struct", "dictionary", "dense_union", "record_batch"}

func main() {
	failed, err := runAll(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d cells failed\n", failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func runAll(arguments []string) (failed int, err error) {
	if err := producer.Open(); err != nil {
		return 0, err
	}
	backends := slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool { return argument == "--chain" })
	onlyChain := len(backends) < len(arguments)
	if len(backends) == 0 {
		backends = producer.Backends()
	}
	if len(backends) == 0 {
		return 0, errors.New("the producer has no backends")
	}
	for _, backend := range backends {
		device, err := openDevice(backend)
		if err != nil {
			return failed, fmt.Errorf("%s: %w", backend, err)
		}
		fmt.Printf("%s: %s: %s\n", backend, device.status, device.description)
		for _, name := range cases {
			for _, direction := range directions {
				if onlyChain && direction.name != "chain" || !direction.concerns(device) {
					continue
				}
				if !runCell(device, name, direction) && device.status != "absent" {
					failed++
				}
			}
		}
	}
	return failed, nil
}

// runCell returns whether it went well.
func runCell(device *device, name string, direction direction) bool {
	cell := cells.Cell{Backend: device.backend, Case: name, Direction: direction.name, Status: device.status}
	if device.status == "absent" {
		return cell.Report(errors.New(device.description))
	}
	producer.AwaitAsync() // a cell that failed may have left a stream behind
	producer.ResetCounters()
	r := run{device: device, name: name, direction: direction}
	err := cells.Protected(func() error { return direction.work(&r) })
	r.end()
	err = errors.Join(err,
		r.checks.Require(r.hooked > 0, "nothing was hooked"),
		r.checks.Equal("the number of releases in Go", r.seen.Load(), r.hooked),
		r.checks.ProducerAtRest(),
	)
	cell.Asserted, cell.Releases = r.checks.Asserted, r.seen.Load()
	return cell.Report(err)
}
