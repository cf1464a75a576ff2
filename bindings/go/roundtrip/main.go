// The program fletching_roundtrip_go sends every case of the reference producer through Go and back
// (tests/roundtrip/README.md): arrays, streams, failing streams. Exit codes: 0 all cells are ok, 1 one is
// not, or there is no producer.
package main

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/roundtrip/cells"
	"github.com/fletching/fletching/bindings/go/roundtrip/dump"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
)

const (
	backend = "cpu"
	batches = 3
	failAt  = 2 // before the third
	never   = -1
)

var directions = []struct {
	name string
	work func(name string, c *cells.Checks) error
}{
	{"array", passArray},
	{"stream", func(name string, c *cells.Checks) error { return passStream(name, never, c) }},
	{"stream_failure", func(name string, c *cells.Checks) error { return passStream(name, failAt, c) }},
}

func main() {
	if err := producer.Open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	names, failed := producer.Cases(), 0
	for _, name := range names {
		for _, direction := range directions {
			if !runCell(name, direction.name, direction.work) {
				failed++
			}
		}
	}
	fmt.Printf("%d cases, %d cells failed\n", len(names), failed)
	if failed > 0 || len(names) == 0 {
		os.Exit(1)
	}
}

// runCell returns whether it went well.
func runCell(name, direction string, work func(string, *cells.Checks) error) bool {
	exported, released := reexport.Exported(), reexport.Released()
	producer.ResetCounters()
	var c cells.Checks
	err := cells.Protected(func() error { return work(name, &c) })
	exported, released = reexport.Exported()-exported, reexport.Released()-released
	err = errors.Join(err,
		c.Require(exported > 0, "Go exported nothing"),
		c.Equal("the number of releases in Go", released, exported),
		c.ProducerAtRest(),
	)
	cell := cells.Cell{
		Backend: backend, Case: name, Direction: direction, Status: "real", Asserted: c.Asserted, Releases: released,
	}
	return cell.Report(err)
}

func checkDump(c *cells.Checks, schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	text, err := dump.Of(schema, array)
	if err != nil {
		return err
	}
	lines, err := producer.VerifyDump(text)
	return c.Compared("dump", lines, err)
}

func passArray(name string, c *cells.Checks) error {
	var schema, ourSchema abi.ArrowSchema
	var array, ourArray abi.ArrowDeviceArray
	defer func() { // what was not moved
		callbacks.ReleaseArrowSchema(&schema)
		callbacks.ReleaseArrowArray(&array.Array)
		callbacks.ReleaseArrowSchema(&ourSchema)
		callbacks.ReleaseArrowArray(&ourArray.Array)
	}()
	if err := producer.ExportArray(backend, name, &schema, &array); err != nil {
		return err
	}
	if err := checkDump(c, &schema, &array); err != nil {
		return err
	}
	if err := reexport.Structs(&schema, &array, &ourSchema, &ourArray); err != nil {
		return err
	}
	if err := c.Require(schema.IsReleased() && array.IsReleased(), "the sources were not moved"); err != nil {
		return err
	}
	return c.Succeeded("verification", producer.VerifyArray(backend, name, &ourSchema, &ourArray))
}

func passStream(name string, failAt int64, c *cells.Checks) error {
	var raw abi.ArrowDeviceArrayStream
	if err := producer.ExportStream(backend, name, batches, failAt, &raw); err != nil {
		return err
	}
	source, err := fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw))
	if err != nil {
		return err
	}
	seen := int64(0)
	stream, err := reexport.Stream(source, func(schema *abi.ArrowSchema, batch *abi.ArrowDeviceArray) error {
		seen++
		return checkDump(c, schema, batch)
	})
	if err != nil {
		return err
	}
	if err := stream.Export(unsafe.Pointer(&raw)); err != nil {
		return err
	}
	verified := producer.VerifyStream(backend, name, batches, failAt, &raw)
	expected := int64(batches)
	if failAt != never {
		expected = failAt
	}
	return errors.Join(c.Succeeded("verification", verified), c.Equal("the number of batches", seen, expected))
}
