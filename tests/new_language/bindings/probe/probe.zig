//! Prints how Zig names device types and data-type codes: each number goes through a struct.

const std = @import("std");
const abi = @import("fletching");

pub fn main(init: std.process.Init) !void {
    for ((try init.minimal.args.toSlice(init.arena.allocator()))[1..]) |argument| {
        const kind, const number = std.mem.cutScalar(u8, argument, ':').?;
        if (std.mem.eql(u8, kind, "code")) {
            const data_type: abi.DLDataType = .{ .code = try std.fmt.parseInt(u8, number, 10), .bits = 8, .lanes = 1 };
            std.debug.print("{f}\n", .{@as(abi.DLDataTypeCode, @fromBackingInt(data_type.code))});
        } else {
            var array = std.mem.zeroes(abi.ArrowDeviceArray);
            array.device_type = @fromBackingInt(try std.fmt.parseInt(i32, number, 10));
            std.debug.print("{f}\n", .{array.device_type});
        }
    }
}
