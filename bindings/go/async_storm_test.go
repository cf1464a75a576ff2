// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Runs many streams on several goroutines. Each ends in one of several ways at a random time.
// FLETCHING_ASYNC_STREAMS sets their number.

// ending is the way in which a producer ends.
type ending int

const (
	regularly ending = iota
	withError
	withPanic
	withGoexit
	unmade    // one batch cannot be made
	abandoned // its context is done at any time
	endingCount
)

type stormPlan struct {
	count  int
	ending ending
	window int
	takes  int    // number of batches that the consumer takes; -1 for all
	leaves string // how the consumer ends afterwards
	skips  bool
	random *rand.Rand
}

func newPlan(seed uint64) stormPlan {
	random := rand.New(rand.NewPCG(seed, 7))
	plan := stormPlan{
		count: random.IntN(30), ending: ending(random.IntN(int(endingCount))), window: 1 + random.IntN(8), takes: -1,
		skips: random.IntN(4) == 0, random: random,
	}
	if random.IntN(3) == 0 {
		plan.takes = random.IntN(20)
		plan.leaves = []string{"break", "context", "close"}[random.IntN(3)]
	}
	return plan
}

func (p stormPlan) open(live *liveBatches) openBatches {
	return func(ctx context.Context) (*Schema, iter.Seq2[AsyncBatch, error], error) {
		return intSchema(), func(yield func(AsyncBatch, error) bool) {
			for rows := 1; rows <= p.count; rows++ {
				batch := AsyncBatch{Array: live.batch(rows)}
				if rows%3 == 0 {
					array := batch.Array
					array.Close()
					batch = AsyncBatch{Make: func() (*DeviceArray, error) { return live.batch(rows), nil }}
				}
				if !yield(batch, nil) {
					return
				}
			}
			switch p.ending {
			case withError:
				yield(AsyncBatch{}, NewError(71, "disk", nil))
			case withPanic:
				panic("lost")
			case withGoexit:
				runtime.Goexit()
			case unmade:
				yield(made(nil, syscall.ENOMEM), nil)
			case abandoned:
				<-ctx.Done()
			}
		}, nil
	}
}

// check reports whether the rows seen by the consumer match the plan.
func (p stormPlan) check(rows []int64, skipped int) error {
	taken := slices.IndexFunc(rows, func(row int64) bool { return row <= 0 })
	if taken < 0 {
		taken = len(rows)
	}
	for i := 1; i < taken; i++ {
		if rows[i-1] >= rows[i] {
			return errors.New("out of order, or twice")
		}
	}
	if taken == len(rows) {
		if p.takes < 0 {
			return errors.New("no end")
		}
		return nil
	}
	last := syscall.Errno(-rows[taken])
	expected := map[ending]syscall.Errno{
		regularly: 0, withError: 71, withPanic: syscall.EIO, withGoexit: syscall.EIO, unmade: syscall.ENOMEM, abandoned: syscall.ECANCELED,
	}[p.ending]
	maySkip := p.ending == unmade && skipped > 0 && last == 0 // a skipped batch is not made
	if last != expected && !maySkip {
		return fmt.Errorf("the end is %d", last)
	}
	if p.ending == regularly && taken+skipped != p.count {
		return errors.New("batches were lost")
	}
	return nil
}

// run runs one stream from its beginning to its end. It returns when both sides are done.
func (p stormPlan) run(live *liveBatches) error {
	sending, cancelSending := context.WithCancel(context.Background())
	defer cancelSending()
	reading, cancelReading := context.WithCancel(context.Background())
	defer cancelReading()
	stream := NewAsyncStream(reading, AsyncOptions{Window: p.window})
	sent := make(chan error, 1)
	handler := stream.Handler()
	go func() { sent <- AsyncProducer{DeviceType: abi.DeviceCPU, Open: p.open(live)}.Send(sending, handler) }()
	if p.ending == abandoned {
		pause := p.random.IntN(100)
		go func() {
			for range pause {
				runtime.Gosched()
			}
			cancelSending()
		}()
	}
	if p.takes < 0 && p.random.IntN(2) == 0 {
		if schema, err := stream.Schema(reading); err == nil {
			schema.Close()
		}
	}
	var rows []int64
	skipped := 0
	for p.takes != len(rows) {
		if p.skips && p.random.IntN(3) == 0 && stream.Skip() {
			skipped++
		}
		rows = append(rows, nextRow(stream))
		if rows[len(rows)-1] <= 0 {
			break
		}
	}
	switch p.leaves {
	case "break":
		for batch, err := range stream.All(reading) {
			row(batch, err)
			break
		}
	case "context":
		cancelReading()
	case "close":
		closed := make(chan struct{})
		go func() { stream.Close(); close(closed) }()
		nextRow(stream)
		<-closed
	}
	err := p.check(rows, skipped)
	result := <-sent
	stream.Close()
	// The end may be sent before the last batch is made.
	if err == nil && p.takes < 0 && p.ending != unmade && (result != nil) != (rows[len(rows)-1] < 0) {
		err = errors.New("the producer has another result")
	}
	if err != nil {
		return fmt.Errorf("%+v: %w: %v, %d skipped, %v", p, err, rows, skipped, result)
	}
	return nil
}

func TestManyAsyncStreams(t *testing.T) {
	count := uint64(1000)
	if text := os.Getenv("FLETCHING_ASYNC_STREAMS"); text != "" {
		count = must(strconv.ParseUint(text, 10, 64))
	}
	before := runtime.NumGoroutine()
	var live liveBatches
	var wait sync.WaitGroup
	var next atomic.Uint64
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for seed := next.Add(1); seed <= count && !t.Failed(); seed = next.Add(1) {
				if err := newPlan(seed).run(&live); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		}()
	}
	wait.Wait()
	expectNone(t, &live)
	awaitGoroutines(before)
}

// awaitGoroutines waits until only as many goroutines as before are left. A finished one may still be counted briefly; a
// leaked one runs into the timeout of go test, which prints the stacks.
func awaitGoroutines(before int) {
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
}
