//! Nothing but the tests that Cargo.toml names.
