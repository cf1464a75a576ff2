// Package cells counts the comparisons of a cell, and reports it (tests/roundtrip/README.md).
package cells

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

// Checks counts the comparisons of one cell.
type Checks struct {
	Asserted int64
}

// Require counts a comparison; one that fails is an error.
func (c *Checks) Require(condition bool, format string, arguments ...any) error {
	c.Asserted++
	if condition {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

// Equal is Require for two numbers.
func (c *Checks) Equal(what string, found, expected int64) error {
	return c.Require(found == expected, "%s: expected %d, got %d", what, expected, found)
}

// Succeeded counts a comparison that another party made.
func (c *Checks) Succeeded(what string, err error) error {
	c.Asserted++
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Compared adds comparisons that another party made; none of them prove nothing.
func (c *Checks) Compared(what string, count int64, err error) error {
	if err != nil {
		return c.Succeeded(what, err)
	}
	c.Asserted += count
	return c.Require(count > 0, "%s: compared nothing", what)
}

// ProducerAtRest checks that everything of the producer has been released, once.
func (c *Checks) ProducerAtRest() error {
	counters := producer.ReadCounters()
	return errors.Join(
		c.Require(counters.Exported > 0, "the producer's exported: expected more than 0"),
		c.Equal("live_allocations", counters.LiveAllocations, 0),
		c.Equal("live_schemas", counters.LiveSchemas, 0),
		c.Equal("live_arrays", counters.LiveArrays, 0),
		c.Equal("live_streams", counters.LiveStreams, 0),
		c.Equal("the producer's released", counters.Released, counters.Exported),
		c.Equal("double_released", counters.DoubleReleased, 0),
	)
}

// Protected runs the work of a cell: a panic is an error, and the next cells run.
func Protected(work func() error) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	return work()
}

// Cell is one result.
type Cell struct {
	Language  string `json:"language"`
	Backend   string `json:"backend"`
	Case      string `json:"case"`
	Direction string `json:"direction"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Asserted  int64  `json:"asserted"`
	Releases  int64  `json:"releases"`
	OK        bool   `json:"ok"`
}

// Report appends the cell, with the error as its reason, to the file that FLETCHING_CELLS names, if it
// names one. It returns whether the cell is ok and was written, and prints what is not.
func (c Cell) Report(err error) bool {
	c.Language, c.OK = "go", err == nil && c.Asserted > 0
	if err != nil {
		c.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	} else if !c.OK {
		c.Reason = "nothing was compared"
	}
	if failed := c.append(); failed != nil {
		c.OK, c.Reason = false, failed.Error()
	}
	if !c.OK {
		fmt.Fprintf(os.Stderr, "%s %s %s: %s\n", c.Backend, c.Case, c.Direction, c.Reason)
	}
	return c.OK
}

func (c Cell) append() error {
	path := os.Getenv("FLETCHING_CELLS")
	if path == "" {
		return nil
	}
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("FLETCHING_CELLS: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
