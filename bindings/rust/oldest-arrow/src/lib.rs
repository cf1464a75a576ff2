//! Empty: the package consists of the tests that Cargo.toml names.
