// SPDX-License-Identifier: Apache-2.0

//! The conversions in `arrow/`, compiled once for each chosen version of arrow-rs.

macro_rules! arrow_versions {
    ($($feature:literal $module:ident $array:ident $data:ident $schema:ident $($async:literal)?;)*) => {$(
        #[cfg(feature = $feature)]
        #[path = "."]
        pub mod $module {
            #![doc = include_str!("arrow/docs.txt")]

            use {$array as arrow_array, $data as arrow_data, $schema as arrow_schema};
            #[path = "arrow/mod.rs"]
            mod conversions;
            pub use conversions::*;

            $(
                #[cfg(feature = $async)]
                #[path = "arrow/nonblocking.rs"]
                mod nonblocking;
                #[cfg(feature = $async)]
                pub use nonblocking::AsyncRecordBatches;
            )?
        }
    )*};
}

arrow_versions! {
    "arrow-54" arrow_54 arrow_array_54 arrow_data_54 arrow_schema_54;
    "arrow-55" arrow_55 arrow_array_55 arrow_data_55 arrow_schema_55;
    "arrow-56" arrow_56 arrow_array_56 arrow_data_56 arrow_schema_56;
    "arrow-57" arrow_57 arrow_array_57 arrow_data_57 arrow_schema_57;
    "arrow-58" arrow_58 arrow_array_58 arrow_data_58 arrow_schema_58 "arrow-async";
    "arrow-59" arrow_59 arrow_array_59 arrow_data_59 arrow_schema_59 "arrow-async";
    "arrow-60" arrow_60 arrow_array_60 arrow_data_60 arrow_schema_60 "arrow-async";
}

// rustfmt finds no modules in a macro.
#[cfg(any())]
#[path = "arrow/mod.rs"]
mod formatted;
#[cfg(any())]
#[path = "arrow/nonblocking.rs"]
mod formatted_async;
