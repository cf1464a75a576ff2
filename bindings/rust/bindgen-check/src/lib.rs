// SPDX-License-Identifier: Apache-2.0

//! Compares bindgen's declarations of upstream's header with `fletching-abi`. Both sides are lists,
//! so a wrong spec is reported as differences and not as a compile error. Never published.

use fletching_testing::entries::{FieldEntry, StructEntry};

#[cfg(test)]
mod core;

/// The declarations that bindgen generated.
#[allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "not ours"
)]
pub mod upstream {
    include!(concat!(env!("OUT_DIR"), "/upstream.rs"));
}

macro_rules! upstream_structs {
    ($($owner:ident { $($field:ident,)* })*) => {
        /// All structs of upstream's header, without leaves and callbacks.
        pub const STRUCTS: &[StructEntry] = &[$(StructEntry {
            name: stringify!($owner),
            size: size_of::<upstream::$owner>(),
            align: align_of::<upstream::$owner>(),
            fields: &[$(FieldEntry {
                path: stringify!($field),
                offset: std::mem::offset_of!(upstream::$owner, $field),
                size: size_of_field(|object: &upstream::$owner| &object.$field),
                type_name: || type_name_of_field(|object: &upstream::$owner| &object.$field),
            }),*],
            leaves: &[],
            callbacks: &[],
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

fn type_name_of_field<S, F>(_: fn(&S) -> &F) -> &'static str {
    std::any::type_name::<F>()
}

/// Returns a line for each difference between two lists of structs.
pub fn compare_structs(ours: &[StructEntry], theirs: &[StructEntry]) -> Vec<String> {
    let mut lines = compare_names(
        "struct",
        ours.iter().map(|s| s.name),
        theirs.iter().map(|s| s.name),
    );
    for ours in ours {
        if let Some(theirs) = theirs.iter().find(|theirs| theirs.name == ours.name) {
            lines.extend(compare_struct(ours, theirs));
        }
    }
    lines
}

/// Returns a line for each difference between two lists of macros.
pub fn compare_macros<T: PartialEq + std::fmt::Debug>(
    ours: &[(&str, T)],
    theirs: &[(&str, T)],
) -> Vec<String> {
    let mut lines = compare_names(
        "macro",
        ours.iter().map(|m| m.0),
        theirs.iter().map(|m| m.0),
    );
    for (name, ours) in ours {
        if let Some((_, theirs)) = theirs.iter().find(|(theirs, _)| theirs == name) {
            lines.extend(differ(name, "value", ours, theirs));
        }
    }
    lines
}

fn compare_struct(ours: &StructEntry, theirs: &StructEntry) -> Vec<String> {
    let names = |entry: &StructEntry| entry.direct_fields().map(|f| f.path).collect::<Vec<_>>();
    let mut lines = Vec::new();
    lines.extend(differ(ours.name, "size", &ours.size, &theirs.size));
    lines.extend(differ(ours.name, "alignment", &ours.align, &theirs.align));
    lines.extend(differ(
        ours.name,
        "order of fields",
        &names(ours),
        &names(theirs),
    ));
    for field in ours.direct_fields() {
        let same = theirs
            .fields
            .iter()
            .find(|theirs| theirs.path == field.path);
        lines.extend(
            same.into_iter()
                .flat_map(|theirs| compare_field(ours.name, field, theirs)),
        );
    }
    lines
}

fn compare_field(owner: &str, ours: &FieldEntry, theirs: &FieldEntry) -> Vec<String> {
    let name = format!("{owner}.{}", ours.path);
    let types = [ours, theirs].map(|field| plain_integer(without_modules((field.type_name)())));
    [
        differ(&name, "offset", &ours.offset, &theirs.offset),
        differ(&name, "size", &ours.size, &theirs.size),
        differ(&name, "type", &types[0], &types[1]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn compare_names<'a>(
    kind: &str,
    ours: impl Iterator<Item = &'a str>,
    theirs: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let [ours, theirs]: [Vec<_>; 2] = [ours.collect(), theirs.collect()];
    let extra = ours.iter().filter(|name| !theirs.contains(name));
    let missing = theirs.iter().filter(|name| !ours.contains(name));
    extra
        .map(|name| format!("{name}: upstream has no such {kind}"))
        .chain(missing.map(|name| format!("{name}: fletching-abi has no such {kind}")))
        .collect()
}

fn differ<T: PartialEq + std::fmt::Debug>(
    name: &str,
    what: &str,
    ours: &T,
    theirs: &T,
) -> Option<String> {
    (ours != theirs)
        .then(|| format!("{name}: {what} {theirs:?} by bindgen, {ours:?} in fletching-abi"))
}

/// Returns the C integer type for a named integer type in Rust.
fn plain_integer(type_name: String) -> String {
    match type_name.as_str() {
        "DLDataTypeCode" => "u8".into(),
        _ => type_name,
    }
}

/// Shortens `*mut a::b::ArrowArray` to `*mut ArrowArray`: the same types are in different modules.
fn without_modules(type_name: &str) -> String {
    let mut plain = String::new();
    for part in type_name.split_inclusive("::") {
        match part.strip_suffix("::") {
            Some(module) => {
                plain += module.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
            }
            None => plain += part,
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use fletching_testing::fields;

    fn assert_none(lines: Vec<String>) {
        assert!(
            lines.is_empty(),
            "{} differences\n{}",
            lines.len(),
            lines.join("\n")
        );
    }

    #[test]
    fn structs_equal_upstream() {
        assert_none(compare_structs(fields::STRUCTS, STRUCTS));
    }

    #[test]
    fn integer_macros_equal_upstream() {
        assert_none(compare_macros(fields::INTEGERS, INTEGERS));
    }

    #[test]
    fn enumerators_equal_upstream() {
        for (owner, ours) in fields::ENUMS {
            let theirs = ENUMS.iter().find(|(name, _)| name == owner);
            let theirs = theirs.map_or(&[][..], |(_, enumerators)| enumerators);
            let newest = theirs.iter().map(|(_, value)| *value).max();
            // The pinned header may be older than the spec.
            let known = |entry: &&(&'static str, i64)| Some(entry.1) <= newest;
            let ours: Vec<_> = ours.iter().filter(known).copied().collect();
            assert_none(compare_macros(&ours, theirs));
        }
        assert_eq!(ENUMS.len(), fields::ENUMS.len());
    }

    #[test]
    fn text_macros_equal_upstream() {
        assert_none(compare_macros(fields::TEXTS, TEXTS));
    }

    #[test]
    fn comparison_names_differences() {
        let stream = STRUCTS
            .iter()
            .find(|s| s.name == "ArrowArrayStream")
            .unwrap();
        let device = STRUCTS
            .iter()
            .find(|s| s.name == "ArrowDeviceArrayStream")
            .unwrap();
        let lines = compare_struct(stream, device);
        assert!(lines[0].contains("size"), "{lines:?}");
        assert!(
            lines.iter().any(|l| l.contains("get_next: offset")),
            "{lines:?}"
        );
        assert!(
            lines.iter().any(|l| l.contains("get_next: type")),
            "{lines:?}"
        );
        assert_eq!(compare_structs(&[], STRUCTS).len(), STRUCTS.len());
        assert_eq!(compare_macros(&[("A", 1)], &[("A", 2), ("B", 1)]).len(), 2);
    }

    #[test]
    fn without_modules_strips_module_paths() {
        let name =
            "core::option::Option<unsafe extern \"C\" fn(*mut a::b_1::C, *const i8) -> d::E>";
        assert_eq!(
            without_modules(name),
            "Option<unsafe extern \"C\" fn(*mut C, *const i8) -> E>"
        );
    }
}
