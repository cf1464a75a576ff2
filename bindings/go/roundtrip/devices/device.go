package main

import (
	"context"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
)

// device is one backend of the producer, and the three operations on its events.
type device struct {
	backend     string
	status      string // as a cell has it
	description string // the device's name and version, or why it is absent
	vulkan      *fletching.VulkanContext
}

// openDevice registers the waiter of ext_dev when the backend is that.
func openDevice(backend string) (*device, error) {
	d := &device{backend: backend}
	var err error
	if d.status, d.description, err = producer.Presence(backend); err != nil || d.status == "absent" {
		return d, err
	}
	switch backend {
	case "vulkan":
		handles, err := producer.Vulkan()
		d.vulkan = &handles
		return d, err
	case "ext_dev":
		return d, fletching.RegisterWaiter(abi.DeviceExtDev, extDevWaiter{})
	}
	return d, nil
}

// hasQueues is false for cpu alone: no event, no gate.
func (d *device) hasQueues() bool { return d.backend != "cpu" }

func (d *device) ready(array *fletching.DeviceArray) (bool, error) {
	if d.vulkan != nil {
		return array.ReadyVulkan(*d.vulkan)
	}
	return array.Ready()
}

// waitOn gets the handle of a producer.Queue.
func (d *device) waitOn(array *fletching.DeviceArray, handle uintptr) error {
	if d.vulkan != nil {
		return array.WaitOnVulkan(*d.vulkan, handle)
	}
	return array.WaitOn(fletching.NewStream(array.DeviceType(), handle))
}

func (d *device) synchronize(array *fletching.DeviceArray) error {
	if d.vulkan != nil {
		return array.SynchronizeVulkan(context.Background(), *d.vulkan)
	}
	return array.Synchronize(context.Background())
}

// extDevWaiter is what a consumer of ext_dev registers: the functions of ext_dev.h.
type extDevWaiter struct{}

func (extDevWaiter) Synchronize(_ context.Context, event fletching.SyncEvent) error {
	producer.ExtDevSynchronize(event.Address)
	return nil
}

func (extDevWaiter) WaitOn(event fletching.SyncEvent, stream fletching.Stream) error {
	return producer.ExtDevWaitOn(event.Address, stream.Handle())
}

func (extDevWaiter) Ready(event fletching.SyncEvent) (bool, error) {
	return producer.ExtDevQuery(event.Address), nil
}
