// SPDX-License-Identifier: Apache-2.0

//! Conversions to and from arrow-rs: one version at a time.

#![cfg(feature = "_arrow")]

#[cfg(feature = "arrow-54")]
extern crate arrow_array_54 as arrow_array;
#[cfg(feature = "arrow-54")]
extern crate arrow_data_54 as arrow_data;
#[cfg(feature = "arrow-54")]
extern crate arrow_schema_54 as arrow_schema;
#[cfg(feature = "arrow-54")]
use fletching::arrow_54 as arrow;

#[cfg(feature = "arrow-55")]
extern crate arrow_array_55 as arrow_array;
#[cfg(feature = "arrow-55")]
extern crate arrow_data_55 as arrow_data;
#[cfg(feature = "arrow-55")]
extern crate arrow_schema_55 as arrow_schema;
#[cfg(feature = "arrow-55")]
use fletching::arrow_55 as arrow;

#[cfg(feature = "arrow-56")]
extern crate arrow_array_56 as arrow_array;
#[cfg(feature = "arrow-56")]
extern crate arrow_data_56 as arrow_data;
#[cfg(feature = "arrow-56")]
extern crate arrow_schema_56 as arrow_schema;
#[cfg(feature = "arrow-56")]
use fletching::arrow_56 as arrow;

#[cfg(feature = "arrow-57")]
extern crate arrow_array_57 as arrow_array;
#[cfg(feature = "arrow-57")]
extern crate arrow_data_57 as arrow_data;
#[cfg(feature = "arrow-57")]
extern crate arrow_schema_57 as arrow_schema;
#[cfg(feature = "arrow-57")]
use fletching::arrow_57 as arrow;

#[cfg(feature = "arrow-58")]
extern crate arrow_array_58 as arrow_array;
#[cfg(feature = "arrow-58")]
extern crate arrow_data_58 as arrow_data;
#[cfg(feature = "arrow-58")]
extern crate arrow_schema_58 as arrow_schema;
#[cfg(feature = "arrow-58")]
use fletching::arrow_58 as arrow;

#[cfg(feature = "arrow-59")]
extern crate arrow_array_59 as arrow_array;
#[cfg(feature = "arrow-59")]
extern crate arrow_data_59 as arrow_data;
#[cfg(feature = "arrow-59")]
extern crate arrow_schema_59 as arrow_schema;
#[cfg(feature = "arrow-59")]
use fletching::arrow_59 as arrow;

#[cfg(feature = "arrow-60")]
extern crate arrow_array_60 as arrow_array;
#[cfg(feature = "arrow-60")]
extern crate arrow_data_60 as arrow_data;
#[cfg(feature = "arrow-60")]
extern crate arrow_schema_60 as arrow_schema;
#[cfg(feature = "arrow-60")]
use fletching::arrow_60 as arrow;

mod alignment;
mod arrays;
mod checks;
mod corpus;
mod streams;
