//! The cells of tests/roundtrip/README.md.

const std = @import("std");

pub var cell: Cell = undefined; // the current cell
pub var failed = false; // whether any cell failed
var reason_buffer: [2048]u8 = undefined;

pub const Cell = struct {
    language: []const u8 = "zig",
    backend: []const u8 = "none",
    @"struct": ?[]const u8 = null,
    case: ?[]const u8 = null,
    direction: []const u8,
    status: []const u8 = "real",
    reason: []const u8 = "",
    asserted: i64 = 0,
    releases: i64 = 0,
    ok: bool = true,

    /// Compares once. A failure prints its line to stderr; the first line is the reason of the cell.
    pub fn check(self: *Cell, good: bool, comptime format: []const u8, arguments: anytype) void {
        self.asserted += 1;
        if (good) return;
        std.debug.print(format ++ "\n", arguments);
        if (self.ok) self.reason = std.fmt.bufPrint(&reason_buffer, format, arguments) catch format;
        self.ok = false;
    }

    /// Appends the cell to the file $FLETCHING_CELLS, if set.
    pub fn report(self: Cell) void {
        if (!self.ok) failed = true;
        const path = std.c.getenv("FLETCHING_CELLS") orelse return;
        const file = std.c.open(path, .{ .ACCMODE = .WRONLY, .CREAT = true, .APPEND = true }, @as(c_uint, 0o666));
        defer _ = std.c.close(file);
        var buffer: [8192]u8 = undefined;
        const json = std.json.fmt(self, .{ .emit_null_optional_fields = false });
        const line = std.fmt.bufPrint(&buffer, "{f}\n", .{json}) catch @panic("a cell is too long");
        if (std.c.write(file, line.ptr, line.len) != line.len) @panic("FLETCHING_CELLS: cannot write");
    }
};
