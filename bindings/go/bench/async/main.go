// SPDX-License-Identifier: Apache-2.0

// Sends batches to another goroutine with a window of 64, through the async interface and through a
// channel. PROGRAM NAME BATCHES prints the nanoseconds per batch.
package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"
	"time"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
)

const window = 64

var leaf = peer.Leaf()

// batches imports batches made by the C peer.
func batches(count int) iter.Seq2[*fletching.DeviceArray, error] {
	raw := new(abi.ArrowDeviceArray)
	return func(yield func(*fletching.DeviceArray, error) bool) {
		for range count {
			*raw = leaf
			if !yield(fletching.ImportDeviceArray(unsafe.Pointer(raw))) {
				return
			}
		}
	}
}

func throughFletching(count int) int {
	ctx := context.Background()
	stream := fletching.NewAsyncStream(ctx, fletching.AsyncOptions{Window: window})
	defer stream.Close()
	schema, err := (&fletching.SchemaBuilder{Format: "l"}).Build()
	peer.Check(err)
	sent := make(chan error, 1)
	go func() {
		sent <- fletching.Send(ctx, schema, abi.DeviceCPU, batches(count), stream.Handler())
	}()
	read := 0
	for batch, err := range stream.All(ctx) {
		peer.Check(err)
		batch.Close()
		read++
	}
	peer.Check(<-sent)
	return read
}

func throughAChannel(count int) int {
	channel := make(chan *fletching.DeviceArray, window)
	go func() {
		defer close(channel)
		for batch, err := range batches(count) {
			peer.Check(err)
			channel <- batch
		}
	}()
	read := 0
	for batch := range channel {
		batch.Close()
		read++
	}
	return read
}

func main() {
	run := map[string]func(int) int{"fletching": throughFletching, "channel": throughAChannel}
	if len(os.Args) != 3 || run[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: %s fletching|channel BATCHES\n", os.Args[0])
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[2])
	peer.Check(err)
	start := time.Now()
	if read := run[os.Args[1]](count); read != count {
		panic(fmt.Sprintf("%d batches of %d", read, count))
	}
	fmt.Printf("{\"ns\": %g}\n", float64(time.Since(start).Nanoseconds())/float64(count))
}
