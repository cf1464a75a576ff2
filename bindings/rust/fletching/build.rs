// SPDX-License-Identifier: Apache-2.0

//! Compiles the event core for the feature `runtime`. Without it no C compiler is needed.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "runtime")]
    compile_core();
}

/// Its functions are named after this version of the crate, so that a program can have several.
#[cfg(feature = "runtime")]
fn compile_core() {
    let version = env!("CARGO_PKG_VERSION").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let prefix = format!("FletchingRust_{version}_");
    println!("cargo:rerun-if-changed=core");
    println!("cargo:rustc-env=FLETCHING_PREFIX={prefix}");
    cc::Build::new()
        .file("core/fletching_core.c")
        .std("c11")
        .define("FLETCHING_PREFIX", prefix.as_str())
        .compile("fletching_core");
}
