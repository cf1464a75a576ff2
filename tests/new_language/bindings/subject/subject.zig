//! Zig as a subject of the conformance suite: passes structs on with a release callback in Zig.

const std = @import("std");
const abi = @import("fletching");
const suite = @import("conformance");

const Schema = abi.ArrowSchema;
const Array = abi.ArrowDeviceArray;
const Stream = abi.ArrowDeviceArrayStream;
const Message = suite.struct_FletchingMessage;
const allocator = std.heap.c_allocator;

var subject = blk: {
    var table = std.mem.zeroes(suite.struct_FletchingSubject);
    table.size = @sizeOf(suite.struct_FletchingSubject);
    table.name = "zig";
    table.array = @ptrCast(&passArray);
    table.device_stream = @ptrCast(&passStream);
    break :blk table;
};

export fn FletchingConformanceSubject(index: i32) ?*const suite.struct_FletchingSubject {
    return if (index == 0) &subject else null;
}

fn passArray(_: ?*anyopaque, schema: *Schema, array: *Array, out_schema: *Schema, out: *Array, message: *Message) callconv(.c) c_int {
    const memory = allocator.create(Schema) catch return noMemory(message);
    const more = allocator.create(abi.ArrowArray) catch {
        allocator.destroy(memory);
        return noMemory(message);
    };
    out_schema.* = forward(schema, memory);
    out.* = array.*;
    out.array = forward(&array.array, more);
    return 0;
}

fn passStream(_: ?*anyopaque, stream: *Stream, out: *Stream, message: *Message) callconv(.c) c_int {
    out.* = forward(stream, allocator.create(Stream) catch return noMemory(message));
    out.get_schema = getSchema;
    out.get_next = getNext;
    out.get_last_error = getLastError;
    return 0;
}

fn getSchema(self: *Stream, out: *Schema) callconv(.c) c_int {
    const source = sourceOf(self);
    const code = source.get_schema.?(source, out);
    if (code == 0) out.* = forward(out, allocator.create(Schema) catch return @backingInt(std.c.E.NOMEM));
    return code;
}

fn getNext(self: *Stream, out: *Array) callconv(.c) c_int {
    const source = sourceOf(self);
    const code = source.get_next.?(source, out);
    if (code != 0 or out.array.release == null) return code;
    out.array = forward(&out.array, allocator.create(abi.ArrowArray) catch return @backingInt(std.c.E.NOMEM));
    return 0;
}

fn getLastError(self: *Stream) callconv(.c) ?[*:0]const u8 {
    const source = sourceOf(self);
    return source.get_last_error.?(source);
}

fn sourceOf(self: *Stream) *Stream {
    return @ptrCast(@alignCast(self.private_data.?));
}

/// Exports the same data with a release callback in Zig. Moves `source` into `memory`, from where it is released.
fn forward(source: anytype, memory: @TypeOf(source)) std.meta.Child(@TypeOf(source)) {
    const Owner = struct {
        fn release(object: @TypeOf(source)) callconv(.c) void {
            const moved: @TypeOf(source) = @ptrCast(@alignCast(object.private_data.?));
            moved.release.?(moved);
            allocator.destroy(moved);
            object.release = null;
        }
    };
    memory.* = source.*;
    source.release = null;
    var out = memory.*;
    out.release = Owner.release;
    out.private_data = memory;
    return out;
}

fn noMemory(message: *Message) c_int {
    const text = "no memory";
    @memcpy(message.text[0..text.len], text);
    message.text[text.len] = 0;
    return @backingInt(std.c.E.NOMEM);
}
