// The program fletching_roundtrip_go sends every case of the reference producer through Go and back
// (tests/roundtrip/README.md). Exit codes: 0 all came back right, 1 something did not, or there is no producer.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

const (
	backend = "cpu"
	batches = 3
	failAt  = 2
	never   = -1
)

func main() {
	if err := producer.Open(producer.Path()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cases := producer.Cases()
	failed := 0
	for _, name := range cases {
		fmt.Println(name)
		ok := runCell(name, "array", func(c *checks) error { return runArray(name, c) })
		ok = runCell(name, "stream", func(c *checks) error { return runStream(name, never, c) }) && ok
		ok = runCell(name, "stream_failure", func(c *checks) error { return runStream(name, failAt, c) }) && ok
		if !ok {
			failed++
		}
	}
	fmt.Printf("%d of %d cases went through Go and back\n", len(cases)-failed, len(cases))
	if failed > 0 || len(cases) == 0 {
		os.Exit(1)
	}
}

// checks counts the comparisons of one cell.
type checks struct {
	asserted int
}

func (c *checks) require(condition bool, format string, arguments ...any) error {
	c.asserted++
	if condition {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

func (c *checks) equal(what string, found, expected int64) error {
	return c.require(found == expected, "%s is %d, expected %d", what, found, expected)
}

func (c *checks) succeeded(what string, err error) error {
	return c.require(err == nil, "%s: %v", what, err)
}

// sameText compares what Go sees of a case with the catalogue.
func (c *checks) sameText(name string, schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
	found, err := walk.Describe(schema, array)
	if err != nil {
		return err
	}
	return c.require(found == producer.Describe(name), "%s", difference(found, producer.Describe(name)))
}

// difference shows the first line in which two texts differ.
func difference(found, expected string) string {
	lines, wanted := strings.Split(found, "\n"), strings.Split(expected, "\n")
	i := 0
	for i < len(lines)-1 && i < len(wanted)-1 && lines[i] == wanted[i] {
		i++
	}
	return walk.Printable(fmt.Sprintf("'%s', expected '%s'", lines[i], wanted[i]))
}

// runCell runs one direction of a case, reports it, and returns whether it went well.
func runCell(name, direction string, run func(*checks) error) bool {
	exported, released := reexport.Exported(), reexport.Released()
	producer.ResetCounters()
	var c checks
	err := protected(&c, run)
	releases := reexport.Released() - released
	if err == nil {
		err = atRest(&c, reexport.Exported()-exported, releases)
	}
	result := cell{
		Language: "go", Backend: backend, Case: name, Direction: direction, Status: "real",
		Asserted: c.asserted, Releases: releases, OK: err == nil,
	}
	if err != nil {
		result.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", name, direction, result.Reason)
	}
	if err := result.report(); err != nil {
		fmt.Fprintf(os.Stderr, "%s %s: %v\n", name, direction, err)
		return false
	}
	return result.OK
}

// protected lets the other cells run after a panic in this one.
func protected(c *checks, run func(*checks) error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	return run(c)
}

func runArray(name string, c *checks) error {
	var schema, ourSchema abi.ArrowSchema
	var array, ourArray abi.ArrowDeviceArray
	defer func() {
		reexport.ReleaseSchema(&ourSchema)
		reexport.ReleaseArray(&ourArray.Array)
		reexport.ReleaseSchema(&schema)
		reexport.ReleaseArray(&array.Array)
	}()
	if err := c.succeeded("export", producer.ExportArray(backend, name, &schema, &array)); err != nil {
		return err
	}
	if err := c.sameText(name, &schema, &array); err != nil {
		return err
	}
	// The array first: it needs the schema as it is.
	if err := reexport.Array(&schema, &array, &ourArray); err != nil {
		return err
	}
	if err := reexport.Schema(&schema, &ourSchema); err != nil {
		return err
	}
	if err := c.require(schema.Release == 0 && array.Array.Release == 0, "the sources were not moved"); err != nil {
		return err
	}
	return c.succeeded("verification", producer.VerifyArray(backend, name, &ourSchema, &ourArray))
}

func runStream(name string, failAt int64, c *checks) error {
	var stream, ourStream abi.ArrowDeviceArrayStream
	defer func() {
		reexport.ReleaseStream(&ourStream)
		reexport.ReleaseStream(&stream)
	}()
	if err := c.succeeded("export", producer.ExportStream(backend, name, batches, failAt, &stream)); err != nil {
		return err
	}
	seen := int64(0)
	observe := func(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray) error {
		seen++
		return c.sameText(name, schema, array)
	}
	if err := reexport.Stream(&stream, observe, &ourStream); err != nil {
		return err
	}
	if err := c.require(stream.Release == 0, "the source was not moved"); err != nil {
		return err
	}
	err := c.succeeded("verification", producer.VerifyStream(backend, name, batches, failAt, &ourStream))
	if err != nil {
		return err
	}
	expected := int64(batches)
	if failAt != never {
		expected = failAt
	}
	return c.equal("the number of batches", seen, expected)
}

// atRest checks that everything has been released, Go's and the producer's, once.
func atRest(c *checks, exported, released int64) error {
	counters, misused := producer.ReadCounters(), reexport.Misused()
	return errors.Join(
		c.require(exported > 0, "Go exported nothing"),
		c.equal("the number of releases in Go", released, exported),
		c.equal("live_allocations", counters.LiveAllocations, 0),
		c.equal("live_schemas", counters.LiveSchemas, 0),
		c.equal("live_arrays", counters.LiveArrays, 0),
		c.equal("live_streams", counters.LiveStreams, 0),
		c.equal("the producer's released", counters.Released, counters.Exported),
		c.equal("double_released", counters.DoubleReleased, 0),
		c.equal("the number of misused callbacks", int64(len(misused)), 0),
		errors.Join(misused...),
	)
}
