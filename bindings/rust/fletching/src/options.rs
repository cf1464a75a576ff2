// SPDX-License-Identifier: Apache-2.0

//! Strictness towards foreign producers.

use std::fmt;

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

use crate::error::Error;

/// Defines a setter for each field. The options are `non_exhaustive`, so that later versions can
/// add fields, and other crates cannot construct them as struct literals.
#[cfg(any(feature = "_arrow", feature = "dlpack"))]
macro_rules! setters {
    ($options:ident { $($field:ident: $type:ty,)* }) => {
        impl $options {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$type>) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}
#[cfg(any(feature = "_arrow", feature = "dlpack"))]
pub(crate) use setters;

/// A rule that a foreign producer or consumer broke.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The rule's id in docs/reference/rules, such as `device-array.reserved-zero`.
    pub rule: &'static str,
    /// The problem, the expected and the actual value.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rule {})", self.message, self.rule)
    }
}

type OnWarning = Box<dyn FnMut(&Warning) + Send>;

/// The treatment of warnings. By default they are dropped.
#[derive(Default)]
pub struct Options {
    strict: bool,
    on_warning: Option<OnWarning>,
}

impl Options {
    /// Makes every warning an error, EINVAL.
    #[must_use]
    pub fn strict() -> Self {
        Self {
            strict: true,
            on_warning: None,
        }
    }

    /// Calls `on_warning` for each warning, on the reading thread, before the data is returned.
    #[must_use]
    pub fn on_warning(on_warning: impl FnMut(&Warning) + Send + 'static) -> Self {
        Self {
            strict: false,
            on_warning: Some(Box::new(on_warning)),
        }
    }

    fn warn(&mut self, rule: &'static str, message: &dyn Fn() -> String) -> Result<(), Error> {
        if self.strict {
            return Err(Error::broken_rule(rule, &message()));
        }
        if let Some(on_warning) = &mut self.on_warning {
            on_warning(&Warning {
                rule,
                message: message(),
            });
        }
        Ok(())
    }

    /// Checks whether a batch may occur in a stream whose device type is `promised`.
    pub(crate) fn check_batch(
        &mut self,
        batch: &ArrowDeviceArray,
        promised: ArrowDeviceType,
    ) -> Result<(), Error> {
        let found = batch.device_type;
        if found != promised {
            let message = || {
                format!(
                    "batch: device_type differs from the stream's: expected {promised}, got {found}"
                )
            };
            if !replaces(found, promised) {
                return Err(Error::broken_rule(
                    "device-stream-result.accessible",
                    &(message() + ", memory that the stream's devices may not access"),
                ));
            }
            self.warn("device-stream.one-device-type", &message)?;
        }
        if batch.reserved != [0; 3] {
            self.warn("device-array.reserved-zero", &|| {
                "ArrowDeviceArray.reserved: not zero: expected zeros; hint: fix the producer".into()
            })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("strict", &self.strict)
            .finish_non_exhaustive()
    }
}

/// Whether every device that can access `promised` memory can also access `found` memory.
fn replaces(found: ArrowDeviceType, promised: ArrowDeviceType) -> bool {
    match (found.info(), promised.info()) {
        (Some(found), Some(promised)) => {
            let devices = promised.accessible_from;
            !devices.is_empty()
                && devices
                    .iter()
                    .all(|device| found.accessible_from.contains(device))
        }
        _ => false,
    }
}
