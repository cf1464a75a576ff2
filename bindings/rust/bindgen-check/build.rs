// SPDX-License-Identifier: Apache-2.0

//! Runs bindgen over upstream's headers and writes the results as tables: the declarations, and a
//! list of their fields in the format that the tests use for Fletching's declarations.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bindgen::callbacks::{EnumVariantValue, FieldInfo, IntKind, ParseCallbacks};
use bindgen::{Builder, FieldVisibilityKind};

#[derive(Debug, Default)]
struct Found {
    fields: Vec<(String, String)>,
    integers: BTreeMap<String, i64>,
    /// Names and values by enum.
    enumerators: BTreeMap<String, Vec<(String, i64)>>,
    texts: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default)]
struct Recorder(Arc<Mutex<Found>>);

impl ParseCallbacks for Recorder {
    fn field_visibility(&self, field: FieldInfo<'_>) -> Option<FieldVisibilityKind> {
        // The field of a newtype is called "0".
        if field.field_name != "0" {
            let name = (field.type_name.to_owned(), field.field_name.to_owned());
            self.0.lock().unwrap().fields.push(name);
        }
        None
    }

    fn int_macro(&self, name: &str, value: i64) -> Option<IntKind> {
        self.0
            .lock()
            .unwrap()
            .integers
            .insert(name.to_owned(), value);
        None
    }

    fn enum_variant_name(
        &self,
        owner: Option<&str>,
        name: &str,
        value: EnumVariantValue,
    ) -> Option<String> {
        let value = match value {
            EnumVariantValue::Boolean(value) => value.into(),
            EnumVariantValue::Signed(value) => value,
            EnumVariantValue::Unsigned(value) => value as i64,
        };
        // An enum without a tag is reported as "enum NAME" if a typedef names it.
        let owner = owner.unwrap_or_default().trim_start_matches("enum ");
        let mut found = self.0.lock().unwrap();
        let enumerators = found.enumerators.entry(owner.to_owned()).or_default();
        enumerators.push((name.to_owned(), value));
        None
    }

    fn str_macro(&self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value).into_owned();
        self.0.lock().unwrap().texts.insert(name.to_owned(), value);
    }
}

fn main() {
    let include = upstream_include();
    let recorder = Recorder::default();
    let mut builder = Builder::default()
        .allowlist_type("Arrow.*|DL.*")
        .new_type_alias("ArrowDeviceType")
        .newtype_enum("DL.*")
        // An example in a C comment would be compiled as a Rust doctest.
        .generate_comments(false)
        .parse_callbacks(Box::new(recorder.clone()));
    for header in ["arrow/c/abi.h", "dlpack/dlpack.h"].map(|name| include.join(name)) {
        println!("cargo:rerun-if-changed={}", header.display());
        builder = builder.header(header.to_string_lossy());
    }
    let bindings = builder
        .generate()
        .unwrap_or_else(|error| panic!("bindgen on the headers in {}: {error}", include.display()));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindings
        .write_to_file(out.join("upstream.rs"))
        .expect("OUT_DIR can be written");
    let found = recorder.0.lock().unwrap();
    fs::write(out.join("tables.rs"), tables(&found)).expect("OUT_DIR can be written");
    core(&out);
}

/// Writes the declarations of the core: its structs, and its functions with the crate's structs.
fn core(out: &Path) {
    const STRUCTS: &str =
        "Fletching(Message|ReleaseCounts|Stream|TensorStream|VulkanWaitContext|Waiter)";
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fletching/core/fletching_core.h");
    println!("cargo:rerun-if-changed={}", header.display());
    println!("cargo:rustc-env=FLETCHING_PREFIX="); // the crate's declarations are never called
    let write = |builder: Builder, file: &str| {
        let bindings = builder
            .header(header.to_string_lossy())
            .clang_arg("-DFLETCHING_PREFIX=") // functions without "Fletching", as in the crate
            .blocklist_type("Arrow.*|DL.*")
            .generate_comments(false)
            .generate()
            .expect("bindgen reads fletching_core.h");
        bindings
            .write_to_file(out.join(file))
            .expect("OUT_DIR can be written");
    };
    let structs = Builder::default().allowlist_type(STRUCTS);
    write(structs.allowlist_var("FLETCHING_.*"), "core_structs.rs");
    let functions = Builder::default().allowlist_function(".*");
    write(functions.blocklist_type(STRUCTS), "core_functions.rs");
}

/// Returns the include folder with upstream's headers: `FLETCHING_UPSTREAM_INCLUDE`, or the folder
/// that `make setup` creates.
fn upstream_include() -> PathBuf {
    println!("cargo:rerun-if-env-changed=FLETCHING_UPSTREAM_INCLUDE");
    if let Some(include) = env::var_os("FLETCHING_UPSTREAM_INCLUDE") {
        return include.into();
    }
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/upstream");
    assert!(
        include.is_dir(),
        "{} is not there; run `make`, or set FLETCHING_UPSTREAM_INCLUDE to a folder with \
         arrow/c/abi.h and dlpack/dlpack.h in it",
        include.display()
    );
    include
}

/// Formats `STRUCTS`, `ENUMS`, `INTEGERS` and `TEXTS` as Rust source.
fn tables(found: &Found) -> String {
    let mut structs = String::new();
    for fields in found.fields.chunk_by(|a, b| a.0 == b.0) {
        let names: Vec<_> = fields.iter().map(|(_, field)| field.as_str()).collect();
        structs += &format!("    {} {{ {}, }}\n", fields[0].0, names.join(", "));
    }
    let mut enums = String::new();
    for (owner, enumerators) in &found.enumerators {
        enums += &format!("    ({owner:?}, &{enumerators:?}),\n");
    }
    let integers = rows(&found.integers);
    let texts = rows(&found.texts);
    format!(
        "upstream_structs! {{\n{structs}}}\n\
         /// Every enum, with its enumerators and their values.\n\
         pub const ENUMS: &[(&str, &[(&str, i64)])] = &[\n{enums}];\n\
         /// Every macro with an integer value.\n\
         pub const INTEGERS: &[(&str, i64)] = &[\n{integers}];\n\
         /// Every macro with a text value.\n\
         pub const TEXTS: &[(&str, &str)] = &[\n{texts}];\n"
    )
}

fn rows<T: std::fmt::Debug>(macros: &BTreeMap<String, T>) -> String {
    macros
        .iter()
        .filter(|(name, _)| name.starts_with("ARROW_") || name.starts_with("DLPACK_"))
        .map(|(name, value)| format!("    ({name:?}, {value:?}),\n"))
        .collect()
}
