// SPDX-License-Identifier: Apache-2.0

//! Compiles the C core for the features `runtime` and `dlpack`, and the layout of the C structs for
//! the feature `validate`. Other features need no C compiler.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(any(feature = "runtime", feature = "dlpack"))]
    compile("core/fletching_core.c", "fletching_core");
    #[cfg(feature = "validate")]
    compile("src/validate/layout.c", "fletching_layout");
}

/// Functions get a prefix with the version of the crate, so that a program can contain several
/// versions.
#[cfg(any(feature = "dlpack", feature = "runtime", feature = "validate"))]
fn compile(file: &str, library: &str) {
    let version = env!("CARGO_PKG_VERSION").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    let prefix = format!("FletchingRust_{version}_");
    println!("cargo:rerun-if-changed=core");
    println!("cargo:rerun-if-changed={file}");
    println!("cargo:rustc-env=FLETCHING_PREFIX={prefix}");
    cc::Build::new()
        .file(file)
        .std("c11")
        .define("FLETCHING_PREFIX", prefix.as_str())
        .compile(library);
}
