//! Every case of the reference producer through Zig and back; as a library, tests/roundtrip/transit.h.

const std = @import("std");
const abi = @import("fletching");
const producer = @import("producer");
const testing = @import("testing");

const Text = [*:0]const u8;
const Schema = abi.ArrowSchema;
const Array = abi.ArrowDeviceArray;
const Stream = abi.ArrowDeviceArrayStream;
const Writer = std.Io.Writer;
const allocator = std.heap.c_allocator;
const Problem = error{ NullPointer, NegativeCount, Released, TooDeep, OutOfMemory, WriteFailed };

var exported: std.atomic.Value(i64) = .init(0);
var released: std.atomic.Value(i64) = .init(0);
var message: producer.struct_FletchingMessage = undefined;
var batches: i64 = 0; // dumped in this cell
var stream_schema: Schema = undefined; // of the stream that passes through

pub fn main() u8 {
    for (0..@intCast(producer.FletchingProducerCaseCount())) |index| {
        const name: Text = producer.FletchingProducerCaseName(@intCast(index));
        inline for (.{ "array", "stream", "stream_failure" }, .{ 0, -1, 2 }) |direction, fail_at| {
            testing.cell = .{ .backend = "cpu", .case = std.mem.span(name), .direction = direction };
            producer.FletchingProducerResetCounters();
            exported.raw, released.raw, batches = .{ 0, 0, 0 };
            const outcome = if (fail_at == 0) passArray(name) else passStream(name, fail_at);
            outcome catch |problem| testing.cell.check(false, "{t}", .{problem});
            checkAtRest();
            testing.cell.report();
        }
    }
    return @intFromBool(testing.failed);
}

fn checkAtRest() void {
    var found: [9]i64 = undefined; // as in producer.h; the first four count what is alive
    producer.FletchingProducerReadCounters(@ptrCast(&found));
    found[7..].* = .{ exported.raw, released.raw };
    testing.cell.releases = released.raw;
    const expected: [9]i64 = .{ 0, 0, 0, 0, found[4], found[4], 0, exported.raw, exported.raw };
    testing.cell.check(std.mem.eql(i64, &expected, &found), "counters: expected {any}, got {any}", .{ expected, found });
}

fn passArray(name: Text) !void {
    var schema: Schema, var our_schema: Schema = .{ undefined, undefined };
    var array: Array, var our_array: Array = .{ undefined, undefined };
    try succeeds(producer.FletchingProducerExportArray("cpu", name, @ptrCast(&schema), @ptrCast(&array), &message));
    try verifyDump(&schema, &array);
    try pass(&schema, &array, &our_schema, &our_array);
    testing.cell.check(schema.release == null and array.array.release == null, "not moved", .{});
    try succeeds(producer.FletchingProducerVerifyArray("cpu", name, @ptrCast(&our_schema), @ptrCast(&our_array), &message));
    our_schema.release.?(&our_schema);
    our_array.array.release.?(&our_array.array);
}

fn passStream(name: Text, fail_at: i64) !void {
    var stream: Stream = undefined;
    try succeeds(producer.FletchingProducerExportStream("cpu", name, 3, fail_at, @ptrCast(&stream), &message));
    if (stream.get_schema.?(&stream, &stream_schema) != 0) return error.NoSchema;
    var ours = forward(&stream, try allocator.create(Stream));
    ours.get_schema = getSchema;
    ours.get_next = getNext;
    ours.get_last_error = getLastError;
    try succeeds(producer.FletchingProducerVerifyStream("cpu", name, 3, fail_at, @ptrCast(&ours), &message));
    stream_schema.release.?(&stream_schema);
    testing.cell.check(batches == if (fail_at < 0) 3 else fail_at, "batches: got {d}", .{batches});
}

fn getSchema(self: *Stream, out: *Schema) callconv(.c) c_int {
    const source: *Stream = @ptrCast(@alignCast(self.private_data.?));
    const code = source.get_schema.?(source, out);
    if (code == 0) out.* = forward(out, allocator.create(Schema) catch return -1);
    return code;
}

fn getNext(self: *Stream, out: *Array) callconv(.c) c_int {
    const source: *Stream = @ptrCast(@alignCast(self.private_data.?));
    const code = source.get_next.?(source, out);
    if (code != 0 or out.array.release == null) return code;
    batches += 1;
    verifyDump(&stream_schema, out) catch |problem| testing.cell.check(false, "{t}", .{problem});
    out.array = forward(&out.array, allocator.create(abi.ArrowArray) catch return -1);
    return 0;
}

fn getLastError(self: *Stream) callconv(.c) ?Text {
    const source: *Stream = @ptrCast(@alignCast(self.private_data.?));
    return source.get_last_error.?(source);
}

fn verifyDump(schema: *const Schema, array: *const Array) !void {
    var out: Writer.Allocating = .init(allocator);
    defer out.deinit();
    try dump(&out.writer, "schema", schema);
    try dump(&out.writer, "", array);
    try out.writer.writeByte(0);
    var asserted: i64 = 0;
    try succeeds(producer.FletchingProducerVerifyDump(out.written().ptr, &asserted, &message));
    testing.cell.asserted += asserted;
}

fn succeeds(code: c_int) !void {
    testing.cell.check(code == 0, "{s}", .{std.mem.sliceTo(&message.text, 0)});
    if (code != 0) return error.ProducerFailed;
}

/// The dump of tests/roundtrip/README.md: every field, by reflection.
fn dump(out: *Writer, path: []const u8, value: anytype) Problem!void {
    const T = std.meta.Child(@TypeOf(value));
    switch (T) {
        i64 => try out.print("{s}={d}\n", .{ path, value.* }),
        abi.ArrowDeviceType => try out.print("{s}={d}\n", .{ path, @backingInt(value.*) }),
        ?*anyopaque, ?*const anyopaque => try out.print("{s}=0x{x}\n", .{ path, @intFromPtr(value.*) }),
        ?[*:0]const u8 => try dumpBytes(out, path, if (value.*) |text| std.mem.span(text) else null),
        ?[*]const u8 => try dumpBytes(out, path, if (value.*) |block| block[0..blockSize(block)] else null),
        ?*Schema, ?*abi.ArrowArray => if (value.*) |node| {
            try dump(out, path, node);
        } else if (path[path.len - 1] == ']') return error.NullPointer,
        [3]i64 => try dumpList(out, path, value),
        Schema, Array, abi.ArrowArray => try dumpFields(out, path, value),
        else => comptime std.debug.assert(@typeInfo(std.meta.Child(std.meta.Child(T))) == .@"fn"),
    }
}

fn dumpFields(out: *Writer, path: []const u8, object: anytype) Problem!void {
    const T = std.meta.Child(@TypeOf(object));
    if (@hasField(T, "release") and object.release == null) return error.Released;
    if (@hasField(T, "format") and object.format == null) return error.NullPointer;
    inline for (@typeInfo(T).@"struct".field_names) |name| {
        var buffer: [1024]u8 = undefined; // only a schema that contains itself is deeper
        const dot = if (path.len == 0) "" else ".";
        const below = std.fmt.bufPrint(&buffer, "{s}{s}{s}", .{ path, dot, name }) catch return error.TooDeep;
        const field = &@field(object, name);
        if (!@hasField(T, "n_" ++ name)) {
            try dump(out, below, field);
        } else if (@field(object, "n_" ++ name) != 0) {
            const count = std.math.cast(usize, @field(object, "n_" ++ name)) orelse return error.NegativeCount;
            try dumpList(out, below, (field.* orelse return error.NullPointer)[0..count]);
        }
    }
}

fn dumpList(out: *Writer, path: []const u8, list: anytype) Problem!void {
    for (list, 0..) |*each, i| {
        var buffer: [1024]u8 = undefined;
        const below = std.fmt.bufPrint(&buffer, "{s}[{d}]", .{ path, i }) catch return error.TooDeep;
        try dump(out, below, each);
    }
}

fn dumpBytes(out: *Writer, path: []const u8, bytes: ?[]const u8) Problem!void {
    const present = bytes orelse return out.print("{s}=NULL\n", .{path});
    try out.print("{s}=\"", .{path});
    for (present) |byte| switch (byte) {
        '"', '%', 0...0x1f, 0x7f...0xff => try out.print("%{x:0>2}", .{byte}),
        else => try out.writeByte(byte),
    };
    try out.writeAll("\"\n");
}

/// What the block's own numbers say: a count of pairs, then lengths, each before its bytes.
fn blockSize(block: [*]const u8) usize {
    var size: usize = 4;
    const texts: i32 = 2 * @as(i32, @bitCast(block[0..4].*));
    for (0..@max(0, texts)) |_| size += 4 + @as(u32, @bitCast(block[size..][0..4].*));
    return size;
}

/// The same data under a release callback of Zig, which releases `source`, moved into `memory`.
fn forward(source: anytype, memory: @TypeOf(source)) std.meta.Child(@TypeOf(source)) {
    const Owner = struct {
        fn release(object: @TypeOf(source)) callconv(.c) void {
            const moved: @TypeOf(source) = @ptrCast(@alignCast(object.private_data.?));
            moved.release.?(moved);
            allocator.destroy(moved);
            object.release = null;
            _ = released.fetchAdd(1, .seq_cst);
        }
    };
    memory.* = source.*;
    source.release = null;
    var out = memory.*;
    out.release = Owner.release;
    out.private_data = memory;
    _ = exported.fetchAdd(1, .seq_cst);
    return out;
}

/// On an error both still belong to the caller.
fn pass(schema: ?*Schema, array: ?*Array, out_schema: ?*Schema, out_array: ?*Array) Problem!void {
    if (out_schema == null or out_array == null) return error.NullPointer;
    var nowhere: Writer.Discarding = .init(&.{}); // what can be read can be passed on
    try dump(&nowhere.writer, "schema", schema orelse return error.NullPointer);
    try dump(&nowhere.writer, "", array orelse return error.NullPointer);
    const memory = try allocator.create(Schema);
    errdefer allocator.destroy(memory);
    const more = try allocator.create(abi.ArrowArray);
    out_array.?.* = array.?.*;
    out_array.?.reserved = @splat(0);
    out_array.?.array = forward(&array.?.array, more);
    out_schema.?.* = forward(schema.?, memory);
}

export fn FletchingTransitArray(schema: ?*Schema, array: ?*Array, out_schema: ?*Schema, out_array: ?*Array, room: [*c]u8, capacity: usize) c_int {
    const text = if (pass(schema, array, out_schema, out_array)) "" else |problem| @errorName(problem);
    const size = @min(text.len, capacity -| 1);
    if (room != null and capacity > 0) {
        @memcpy(room[0..size], text[0..size]);
        room[size] = 0;
    }
    return if (text.len == 0) 0 else @backingInt(std.c.E.INVAL);
}

export fn FletchingTransitExported() i64 {
    return exported.load(.seq_cst);
}

export fn FletchingTransitReleased() i64 {
    return released.load(.seq_cst);
}

test "hostile structs are refused" {
    for (0..6) |mistake| {
        var schema, var array = .{ std.mem.zeroes(Schema), std.mem.zeroes(Array) };
        schema.format = "\xff";
        schema.release, array.array.release = .{ @ptrFromInt(16), @ptrFromInt(16) }; // never called
        var child: ?*Schema = if (mistake == 1) &schema else null;
        schema.n_children = ([_]i64{ 0, 1, 1, -1, 0, 0 })[mistake];
        if (mistake <= 2) schema.children = @ptrCast(&child);
        if (mistake == 4) array.array.n_buffers = 1;
        if (mistake == 5) array.array.dictionary = &array.array;
        var room: [4]u8 = @splat('x');
        const code = FletchingTransitArray(&schema, &array, &stream_schema, &array, &room, 3);
        try std.testing.expect((code != 0) == (mistake != 0) and room[3] == 'x');
    }
}
