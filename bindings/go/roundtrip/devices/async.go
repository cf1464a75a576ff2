package main

import (
	"context"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

func passAsync(r *run) error {
	gate, err := r.gate()
	if err != nil {
		return err
	}
	// A failure overtakes what was requested and is not read yet. One batch at a time: none is lost.
	window := batchCount
	if r.direction.fails {
		window = 1
	}
	stream := fletching.NewAsyncStream(context.Background(), fletching.AsyncOptions{Window: window})
	defer stream.Close()
	if err := gate.RunAsync(r.name, batchCount, r.failAt(), stream.Handler()); err != nil {
		return err
	}
	c, err := r.readAsync(stream)
	stream.Close()
	if err != nil {
		return err
	}
	err = r.requireContent(gate, c)
	producer.AwaitAsync()
	return err
}

func (r *run) readAsync(stream *fletching.AsyncStream) (*content, error) {
	schema, err := stream.Schema(context.Background())
	if err != nil {
		return nil, err
	}
	return r.readBatches(stream.DeviceType(), schema, stream.All(context.Background()))
}
