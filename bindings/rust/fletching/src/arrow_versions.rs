// SPDX-License-Identifier: Apache-2.0

//! The conversions in `arrow/`, compiled once for each chosen version of arrow-rs.

#[cfg(feature = "arrow-54")]
#[path = "."]
pub mod arrow_54 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_54 as arrow_array, arrow_data_54 as arrow_data, arrow_schema_54 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-55")]
#[path = "."]
pub mod arrow_55 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_55 as arrow_array, arrow_data_55 as arrow_data, arrow_schema_55 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-56")]
#[path = "."]
pub mod arrow_56 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_56 as arrow_array, arrow_data_56 as arrow_data, arrow_schema_56 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-57")]
#[path = "."]
pub mod arrow_57 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_57 as arrow_array, arrow_data_57 as arrow_data, arrow_schema_57 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-58")]
#[path = "."]
pub mod arrow_58 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_58 as arrow_array, arrow_data_58 as arrow_data, arrow_schema_58 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-59")]
#[path = "."]
pub mod arrow_59 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_59 as arrow_array, arrow_data_59 as arrow_data, arrow_schema_59 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}

#[cfg(feature = "arrow-60")]
#[path = "."]
pub mod arrow_60 {
    #![doc = include_str!("arrow/docs.txt")]

    use {
        arrow_array_60 as arrow_array, arrow_data_60 as arrow_data, arrow_schema_60 as arrow_schema,
    };
    #[path = "arrow/mod.rs"]
    mod conversions;
    pub use conversions::*;
}
