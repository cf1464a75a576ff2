// SPDX-License-Identifier: Apache-2.0

//! Descriptions of the structs, as data. The macros at the end build them for [`crate::fields`],
//! which imports all of this module.

pub(crate) use crate::bits::{from_bits, load, store, to_bits};
use crate::oracle::{c_name, functions};

/// A struct.
pub struct StructEntry {
    /// The name, such as "ArrowDeviceArray".
    pub name: &'static str,
    /// The size in bytes.
    pub size: usize,
    /// The alignment in bytes.
    pub align: usize,
    /// All fields, including the fields of embedded structs.
    pub fields: &'static [FieldEntry],
    /// All values: array elements one by one, embedded structs only by their fields.
    pub leaves: &'static [LeafEntry],
    /// All callbacks, except the callbacks of embedded structs.
    pub callbacks: &'static [CallbackEntry],
}

impl StructEntry {
    /// The fields of the struct, without the fields of embedded structs.
    pub fn direct_fields(&self) -> impl Iterator<Item = &'static FieldEntry> {
        self.fields.iter().filter(|field| !field.path.contains('.'))
    }
}

/// A field.
pub struct FieldEntry {
    /// The path, such as "device_id" or "array.length".
    pub path: &'static str,
    /// The offset from the start of the struct, in bytes.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
    /// The type name given by the compiler.
    pub type_name: fn() -> &'static str,
}

/// A value in a struct. Both functions take memory that contains the struct.
pub struct LeafEntry {
    /// The path, such as "reserved" or "array.length".
    pub path: &'static str,
    /// The index of an array element, otherwise 0.
    pub element: i32,
    /// Reads the bits through the declaration.
    pub read: unsafe fn(*const u8) -> u64,
    /// Writes the bits through the declaration.
    pub write: unsafe fn(*mut u8, u64),
}

/// A callback. Both functions take memory that contains the struct.
pub struct CallbackEntry {
    /// The name, such as "get_next".
    pub name: &'static str,
    /// The widths of the arguments and of the result in the oracle's notation. `install` only
    /// compiles if these are the declared types.
    pub signature: fn() -> String,
    /// Sets the field to a function of exactly the declared type. The function reports its
    /// arguments to the oracle and returns the value that the oracle expects.
    pub install: unsafe fn(*mut u8),
    /// Calls the field's function with the arguments of the oracle's current call. Returns the bits
    /// of its result, or 0 if the field is `None`.
    pub call: unsafe fn(*mut u8) -> u64,
}

/// Returns the type name of a value.
pub fn type_name_of<T>(_: &T) -> &'static str {
    std::any::type_name::<T>()
}

/// Returns the width of an argument or a result in the oracle's notation.
pub fn width<T>() -> String {
    match std::any::type_name::<T>() {
        "()" => "v".into(),
        pointer if pointer.starts_with('*') => "p".into(),
        function if function.starts_with("core::option::Option<unsafe extern") => "p".into(),
        _ => size_of::<T>().to_string(),
    }
}

/// The body of an installed callback: reports its arguments and returns the expected result.
///
/// # Safety
///
/// All bit patterns are valid for T.
pub unsafe fn answer<T>(owner: &str, callback: &str, arguments: &[u64]) -> T {
    let (owner, callback) = (c_name(owner), c_name(callback));
    for (index, &bits) in (0..).zip(arguments) {
        // SAFETY: both names are NUL-terminated.
        unsafe { (functions().saw_argument)(owner.as_ptr(), callback.as_ptr(), index, bits) };
    }
    // SAFETY: the caller guarantees T.
    unsafe { from_bits((functions().expected_result)()) }
}

/// The arguments of the oracle's current call, as the index of the next one.
pub struct Arguments(pub i32);

impl Arguments {
    /// Returns the next argument.
    ///
    /// # Safety
    ///
    /// All bit patterns are valid for T.
    pub unsafe fn next<T>(&mut self) -> T {
        let index = self.0;
        self.0 += 1;
        // SAFETY: the caller guarantees T.
        unsafe { from_bits((functions().argument)(index)) }
    }
}

macro_rules! integer_entries {
    ($($name:ident = $value:expr;)*) => {
        /// All macros with an integer value.
        pub const INTEGERS: &[(&str, i64)] = &[$((stringify!($name), $value as i64)),*];
    };
}

macro_rules! enumerator_entries {
    ($($owner:literal { $($name:literal = $value:expr,)* })*) => {
        /// All C enums, with their enumerators and values.
        pub const ENUMS: &[(&str, &[(&str, i64)])] = &[$(
            ($owner, &[$(($name, $value as i64)),*])
        ),*];
    };
}

macro_rules! text_entries {
    ($($name:ident;)*) => {
        /// All macros with a string value.
        pub const TEXTS: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

macro_rules! dotted {
    ($first:ident $(.$rest:ident)*) => {
        concat!(stringify!($first) $(, ".", stringify!($rest))*)
    };
}

macro_rules! struct_entries {
    ($($owner:ident {
        fields { $($($field:ident).+,)* }
        leaves { $($($leaf:ident).+ $([$element:literal])?,)* }
        callbacks { $($callback:ident $arguments:tt -> $result:ty;)* }
    })*) => {
        /// All structs.
        pub const STRUCTS: &[StructEntry] = &[$(StructEntry {
            name: stringify!($owner),
            size: size_of::<$owner>(),
            align: align_of::<$owner>(),
            fields: &[$(FieldEntry {
                path: dotted!($($field).+),
                offset: core::mem::offset_of!($owner, $($field).+),
                size: size_of_val(&$owner::zeroed().$($field).+),
                type_name: || type_name_of(&$owner::zeroed().$($field).+),
            }),*],
            leaves: &[$(LeafEntry {
                path: dotted!($($leaf).+),
                element: 0 $(+ $element)?,
                read: |object| {
                    let object = object.cast::<$owner>();
                    // SAFETY: the memory contains the struct.
                    unsafe { load(&raw const (*object).$($leaf).+ $([$element])?) }
                },
                write: |object, bits| {
                    let object = object.cast::<$owner>();
                    // SAFETY: the memory contains the struct.
                    unsafe { store(&raw mut (*object).$($leaf).+ $([$element])?, bits) }
                },
            }),*],
            callbacks: &[$(callback_entry!($owner, $callback $arguments -> $result)),*],
        }),*];
    };
}

macro_rules! callback_entry {
    ($owner:ident, $callback:ident(
        $($argument:ident: $type:ty),* $(,)?
    ) -> $result:ty) => {
        CallbackEntry {
            name: stringify!($callback),
            signature: || {
                let arguments = [$(width::<$type>()),*];
                format!("{}->{}", arguments.join(","), width::<$result>())
            },
            install: |object| {
                unsafe extern "C" fn answering($($argument: $type),*) -> $result {
                    let arguments = [$(to_bits($argument)),*];
                    // SAFETY: the result is an integer, a pointer or nothing.
                    unsafe { answer(stringify!($owner), stringify!($callback), &arguments) }
                }
                // SAFETY: the memory contains the struct.
                unsafe { (*object.cast::<$owner>()).$callback = Some(answering) }
            },
            call: |object| {
                let object = object.cast::<$owner>();
                let mut arguments = Arguments(0);
                // SAFETY: the memory contains the struct, and the field is a function of the
                // oracle, which dereferences no pointer.
                unsafe {
                    (*object).$callback.map_or(0, |function| {
                        to_bits(function($(arguments.next::<$type>()),*))
                    })
                }
            },
        }
    };
}

pub(crate) use {
    callback_entry, dotted, enumerator_entries, integer_entries, struct_entries, text_entries,
};
