// The library that `fletching validate` calls for arrow-go: its package cdata behind the functions of fletching/roles.h.
// A panic ends the process, as it does in a program that has no recover.
package main

// #include <stdlib.h>
import "C"

import (
	"context"
	"io"
	"syscall"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
)

// C memory, because the exported buffers stay in use after the calls.
var allocator = mallocator.NewMallocator()

var columns = arrow.NewSchema([]arrow.Field{
	{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func batch() arrow.RecordBatch {
	builder := array.NewRecordBuilder(allocator, columns)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 0, 3}, []bool{true, false, true})
	builder.Field(1).(*array.StringBuilder).AppendValues([]string{"a", "", "b"}, []bool{true, false, true})
	return builder.NewRecordBatch()
}

// code returns ENOTSUP for every error, because arrow-go's errors have no errno value.
func code(err error) C.int {
	if err != nil {
		return C.int(syscall.ENOTSUP)
	}
	return 0
}

//export export_record_batch
func export_record_batch(schema, out unsafe.Pointer) C.int {
	record := batch()
	defer record.Release()
	cdata.ExportArrowRecordBatch(record, (*cdata.CArrowArray)(out), (*cdata.CArrowSchema)(schema))
	return 0
}

//export export_views
func export_views(schema, out unsafe.Pointer) C.int {
	builder := array.NewStringViewBuilder(allocator)
	defer builder.Release()
	builder.AppendValues([]string{"a", "", "longer than twelve bytes"}, []bool{true, false, true})
	views := builder.NewArray()
	defer views.Release()
	cdata.ExportArrowArray(views, (*cdata.CArrowArray)(out), (*cdata.CArrowSchema)(schema))
	return 0
}

//export export_slice
func export_slice(schema, out unsafe.Pointer) C.int {
	record := batch()
	defer record.Release()
	slice := array.NewSlice(record.Column(0), 1, 3)
	defer slice.Release()
	cdata.ExportArrowArray(slice, (*cdata.CArrowArray)(out), (*cdata.CArrowSchema)(schema))
	return 0
}

//export export_reader
func export_reader(out unsafe.Pointer) C.int {
	record := batch()
	defer record.Release()
	reader, err := array.NewRecordReader(columns, []arrow.RecordBatch{record, record})
	if err != nil {
		return code(err)
	}
	defer reader.Release() // the stream has its own reference
	cdata.ExportRecordReader(reader, (*cdata.CArrowArrayStream)(out))
	return 0
}

//export export_async
func export_async(handler unsafe.Pointer) C.int {
	records := make(chan cdata.RecordMessage, 2)
	for range 2 {
		records <- cdata.RecordMessage{Record: batch()}
	}
	close(records)
	go cdata.ExportAsyncRecordBatchStream(columns, records, (*cdata.CArrowAsyncDeviceStreamHandler)(handler))
	return 0
}

//export import_array
func import_array(schema, in unsafe.Pointer) C.int {
	_, imported, err := cdata.ImportCArray((*cdata.CArrowArray)(in), (*cdata.CArrowSchema)(schema))
	if err == nil {
		imported.Release()
	}
	return code(err)
}

//export import_reader
func import_reader(in unsafe.Pointer) C.int {
	reader, err := cdata.ImportCRecordReader((*cdata.CArrowArrayStream)(in), nil)
	if err != nil {
		return code(err)
	}
	defer reader.(interface{ Release() }).Release()
	for {
		// The reader keeps the batch until it reads the next one.
		if _, err := reader.Read(); err == io.EOF {
			return 0
		} else if err != nil {
			return code(err)
		}
	}
}

//export import_async
func import_async(out *unsafe.Pointer) C.int {
	*out = C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowAsyncDeviceStreamHandler{})))
	handler := (*cdata.CArrowAsyncDeviceStreamHandler)(*out)
	streams := cdata.CreateAsyncDeviceStreamHandler(context.Background(), 2, handler)
	go func() {
		stream := <-streams
		if stream.Err != nil {
			return
		}
		for message := range stream.Stream {
			if message.Record != nil {
				message.Record.Release()
			}
		}
	}()
	return 0
}

func main() {}
