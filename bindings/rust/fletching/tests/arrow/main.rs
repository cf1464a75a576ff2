// SPDX-License-Identifier: Apache-2.0

//! Conversions to and from arrow-rs: the newest of the chosen versions.

#![cfg(feature = "_arrow")]

macro_rules! newest_arrow {
    ([$($newer:literal)*]) => {};
    ([$($newer:literal)*] $feature:literal $module:ident $array:ident $data:ident $schema:ident; $($older:tt)*) => {
        #[cfg(all(feature = $feature, not(any($(feature = $newer),*))))]
        extern crate $array as arrow_array;
        #[cfg(all(feature = $feature, not(any($(feature = $newer),*))))]
        extern crate $data as arrow_data;
        #[cfg(all(feature = $feature, not(any($(feature = $newer),*))))]
        extern crate $schema as arrow_schema;
        #[cfg(all(feature = $feature, not(any($(feature = $newer),*))))]
        use fletching::$module as arrow;
        newest_arrow! { [$($newer)* $feature] $($older)* }
    };
}

newest_arrow! { []
    "arrow-60" arrow_60 arrow_array_60 arrow_data_60 arrow_schema_60;
    "arrow-59" arrow_59 arrow_array_59 arrow_data_59 arrow_schema_59;
    "arrow-58" arrow_58 arrow_array_58 arrow_data_58 arrow_schema_58;
    "arrow-57" arrow_57 arrow_array_57 arrow_data_57 arrow_schema_57;
    "arrow-56" arrow_56 arrow_array_56 arrow_data_56 arrow_schema_56;
    "arrow-55" arrow_55 arrow_array_55 arrow_data_55 arrow_schema_55;
    "arrow-54" arrow_54 arrow_array_54 arrow_data_54 arrow_schema_54;
}

mod alignment;
mod arrays;
mod checks;
mod corpus;
#[cfg(all(
    feature = "arrow-async",
    feature = "async",
    any(feature = "arrow-58", feature = "arrow-59", feature = "arrow-60")
))]
mod nonblocking;
mod streams;
