// SPDX-License-Identifier: Apache-2.0

//! Compiles the peer of the benchmarks, which is written in C.

fn main() {
    let peer = "../../../cpp/bench/c/peer.c";
    println!("cargo::rerun-if-changed={peer}");
    cc::Build::new()
        .file(peer)
        .include("../../../cpp/include")
        .flag("-std=c11")
        .compile("fletching_bench_peer");
}
