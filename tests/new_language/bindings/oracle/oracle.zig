//! Compares every declaration with tests/oracle. Finds structs and fields by reflection.

const std = @import("std");
const abi = @import("fletching");
const oracle = @import("oracle");
const testing = @import("testing");

const meta = std.meta;
const Name = [:0]const u8;
const Direction = enum { layout, c_writes, c_verifies, c_calls, c_is_called };
/// Large enough for the declarations of Zig and C, so that a wrong one fails a check instead of crashing.
var memory: [1024]u8 align(16) = undefined;

pub fn main() u8 {
    inline for (comptime std.enums.values(Direction)) |direction| {
        inline for (comptime declared(abi, .structs)) |name| {
            testing.cell = .{ .@"struct" = name, .direction = @tagName(direction) };
            @memset(&memory, 0);
            checkStruct(@field(abi, name), name, direction);
            testing.cell.report();
        }
    }
    checkConstants();
    return @intFromBool(testing.failed);
}

/// A check of the oracle and the buffer of its message.
fn agrees(comptime check: Name, arguments: anytype) void {
    var message: [1024]u8 = @splat(0);
    const code = @call(.auto, @field(oracle, "FletchingOracle" ++ check), arguments ++ .{ &message, message.len });
    testing.cell.check(code == 0, "{s}", .{std.mem.sliceTo(&message, 0)});
}

fn declared(comptime Owner: type, comptime kind: enum { structs, numbers, callbacks }) []const Name {
    @setEvalBranchQuota(100000);
    comptime var found: []const Name = &.{};
    inline for (if (kind == .callbacks) meta.fieldNames(Owner) else meta.declarations(Owner)) |name| {
        const F = if (kind == .callbacks) @FieldType(Owner, name) else @TypeOf(@field(Owner, name));
        if (switch (kind) {
            .callbacks => Callback(F) != void,
            .structs => F == type and @typeInfo(@field(Owner, name)) == .@"struct",
            .numbers => @typeInfo(F) == .comptime_int or @typeInfo(F) == .@"enum",
        }) found = found ++ .{name};
    }
    return found;
}

/// The function type of a field that is a callback, else void.
fn Callback(comptime F: type) type {
    if (@typeInfo(F) != .optional) return void;
    return if (@typeInfo(meta.Child(meta.Child(F))) == .@"fn") meta.Child(meta.Child(F)) else void;
}

fn join(comptime names: []const Name) Name {
    comptime var text: Name = "";
    inline for (names, 0..) |name, i| text = text ++ (if (i == 0) "" else ",") ++ name;
    return text;
}

fn checkStruct(comptime T: type, comptime owner: Name, comptime direction: Direction) void {
    const object: *T = @ptrCast(&memory);
    const is_called = direction == .c_calls or direction == .c_is_called;
    if (direction == .layout or is_called) checkNames(T, owner);
    if (direction == .c_writes) _ = oracle.FletchingOracleFill(owner, object);
    checkFields(direction, owner, "", object);
    if (direction == .c_verifies) agrees("CheckWritten", .{ owner, object });
    if (!is_called or !testing.cell.ok) return; // C would call a wrong address
    inline for (comptime declared(T, .callbacks)) |name| {
        for (0..@intCast(oracle.FletchingOracleVariantCount())) |variant| {
            @memset(&memory, 0);
            checkCall(direction, owner, name, @intCast(variant), &@field(object, name));
        }
    }
}

fn checkNames(comptime T: type, comptime owner: Name) void {
    agrees("CheckStruct", .{ owner, @sizeOf(T), @alignOf(T) });
    agrees("CheckFieldNames", .{ owner, comptime join(meta.fieldNames(T)) });
    agrees("CheckCallbackNames", .{ owner, comptime join(declared(T, .callbacks)) });
    inline for (comptime declared(T, .callbacks)) |name| {
        const function = @typeInfo(Callback(@FieldType(T, name))).@"fn";
        comptime var widths: []const Name = &.{};
        inline for (function.param_types) |P| widths = widths ++ .{comptime width(P.?)};
        agrees("CheckSignature", .{ owner, name, comptime join(widths) ++ "->" ++ width(function.return_type.?) });
    }
}

fn width(comptime T: type) Name {
    if (T == void) return "v";
    const is_pointer = @typeInfo(T) == .pointer or @typeInfo(T) == .optional;
    return if (is_pointer) "p" else std.fmt.comptimePrint("{d}", .{@sizeOf(T)});
}

/// Visits every field of the struct, of embedded structs and of array elements.
fn checkFields(comptime direction: Direction, owner: Name, comptime prefix: Name, object: anytype) void {
    const T = meta.Child(@TypeOf(object));
    inline for (comptime meta.fieldNames(T)) |name| {
        const F = @FieldType(T, name);
        const path = prefix ++ name;
        const field = &@field(object, name);
        const offset: i64 = @intCast(@intFromPtr(field) - @intFromPtr(&memory));
        if (direction == .layout or direction == .c_calls or direction == .c_is_called) {
            agrees("CheckField", .{ owner, path, offset, @sizeOf(F) });
        } else switch (@typeInfo(F)) {
            .@"struct" => {},
            .array => for (field, 0..) |*each, i| checkBits(direction, owner, path, @intCast(i), bits(each)),
            else => checkBits(direction, owner, path, 0, bits(field)),
        }
        if (@typeInfo(F) == .@"struct") checkFields(direction, owner, path ++ ".", field);
    }
}

fn checkBits(comptime direction: Direction, owner: Name, path: Name, element: i32, place: anytype) void {
    if (direction == .c_writes) return agrees("CheckRead", .{ owner, path, element, place.* });
    place.* = @truncate(oracle.FletchingOracleCanary(owner, path, element));
}

/// The bits of a value; the first 64 of a larger one, which only a wrong declaration has.
fn bits(place: anytype) *@Int(.unsigned, @min(64, 8 * @sizeOf(meta.Child(@TypeOf(place))))) {
    return @ptrCast(place);
}

fn fromBits(comptime T: type, value: u64) T {
    var result: T = undefined;
    if (T != void) bits(&result).* = @truncate(value);
    return result;
}

fn toBits(value: anytype) u64 {
    var copy = value;
    return if (@TypeOf(value) == void) 0 else bits(&copy).*;
}

fn checkCall(comptime direction: Direction, comptime owner: Name, comptime name: Name, variant: i32, place: anytype) void {
    const Function = Loose(Callback(meta.Child(@TypeOf(place))));
    if (direction == .c_calls) {
        place.* = @ptrCast(&Answer(owner, name, Function).function);
        agrees("Call", .{ owner, name, variant, &memory });
        testing.cell.releases += @intFromBool(comptime std.mem.eql(u8, name, "release"));
    } else {
        _ = oracle.FletchingOracleInstall(owner, &memory);
        oracle.FletchingOracleBeginCall(owner, name, variant, &memory);
        var given: meta.ArgsTuple(Function) = undefined;
        inline for (&given, 0..) |*each, i| each.* = fromBits(@TypeOf(each.*), oracle.FletchingOracleArgument(i));
        agrees("EndCall", .{toBits(@call(.auto, @as(*const Function, @ptrCast(place.*.?)), given))});
    }
}

/// The function with nullable arguments: the oracle passes NULL for all but the first.
fn Loose(comptime F: type) type {
    const function = @typeInfo(F).@"fn";
    comptime var types: [function.param_types.len]type = undefined;
    inline for (&types, function.param_types) |*T, P| T.* = if (@typeInfo(P.?) == .pointer) ?P.? else P.?;
    return @Fn(&types, &@splat(.{}), function.return_type.?, .{ .@"callconv" = .c });
}

/// A callback that reports its arguments and returns what the oracle expects.
fn Answer(comptime owner: Name, comptime name: Name, comptime Function: type) type {
    const types = @typeInfo(Function).@"fn".param_types;
    const R = @typeInfo(Function).@"fn".return_type.?;
    return struct {
        const function = if (types.len == 1) one else if (types.len == 2) two else if (types.len == 3) three else four;
        fn one(a: types[0].?) callconv(.c) R {
            return answer(.{a});
        }
        fn two(a: types[0].?, b: types[1].?) callconv(.c) R {
            return answer(.{ a, b });
        }
        fn three(a: types[0].?, b: types[1].?, c: types[2].?) callconv(.c) R {
            return answer(.{ a, b, c });
        }
        fn four(a: types[0].?, b: types[1].?, c: types[2].?, d: types[3].?) callconv(.c) R {
            return answer(.{ a, b, c, d });
        }
        fn answer(arguments: anytype) R {
            inline for (arguments, 0..) |each, i| oracle.FletchingOracleSawArgument(owner, name, i, toBits(each));
            return fromBits(R, oracle.FletchingOracleExpectedResult());
        }
    };
}

fn checkConstants() void {
    testing.cell = .{ .@"struct" = "constants", .direction = "layout" };
    const numbers = comptime declared(abi, .numbers);
    agrees("CheckConstantNames", .{comptime join(numbers)});
    inline for (numbers) |name| agrees("CheckConstant", .{ name, @as(i64, @field(abi, name)) });
    inline for (.{ "DLDeviceType", "DLDataTypeCode" }) |owner| {
        comptime var values: []const Name = &.{};
        inline for (comptime declared(@field(abi, owner), .numbers)) |name| {
            const value = @backingInt(@field(@field(abi, owner), name));
            values = values ++ .{std.fmt.comptimePrint("{s}={d}", .{ name, value })};
        }
        agrees("CheckEnumerators", .{ owner, comptime join(values) });
    }
    testing.cell.report();
}
