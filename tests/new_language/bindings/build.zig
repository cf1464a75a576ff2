const std = @import("std");

pub fn build(b: *std.Build) void {
    _ = b.addModule("fletching", .{ .root_source_file = b.path("src/fletching.zig") });
}
