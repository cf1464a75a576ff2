// SPDX-License-Identifier: Apache-2.0

//! Whether a consumer that uses the crate waits, and what it sees when it does not (`gate.h`).

use fletching::{DeviceArray, Error};
use fletching_testing::cells::Tally;

use crate::device::Device;
use crate::gated::{Gated, OpenAtLast, Queue, NEW, OLD};

/// Counts a comparison; one that fails is an error.
pub fn require(
    tally: &mut Tally,
    condition: bool,
    problem: impl FnOnce() -> String,
) -> Result<(), Error> {
    tally.asserted += 1;
    match condition {
        true => Ok(()),
        false => Err(Error::new(libc::EBADMSG, problem())),
    }
}

/// The same of two numbers.
pub fn require_equal(tally: &mut Tally, what: &str, seen: i64, expected: i64) -> Result<(), Error> {
    require(tally, seen == expected, || {
        format!("{what} is {seen}, expected {expected}")
    })
}

fn require_compared(tally: &mut Tally, what: &str, compared: i64) -> Result<(), Error> {
    require(tally, compared > 0, || format!("{what} compared nothing"))?;
    tally.asserted += compared as u64;
    Ok(())
}

fn require_ready(
    tally: &mut Tally,
    device: &Device,
    array: &DeviceArray,
    expected: bool,
) -> Result<(), Error> {
    let ready = device.is_ready(array)?;
    require(tally, ready == expected, || match expected {
        true => "is_ready() is false, and the gate is open".into(),
        false => "is_ready() is true, and the gate is shut".into(),
    })
}

/// With the gate shut no event has happened, and a wait on a queue returns at once and holds back
/// what is read there, while a read on another queue completes. Opens the gate: then the new data
/// are read, the host's wait returns, and the events have happened. On a device without queues there
/// is no event, and each operation reports at once that there is nothing to wait for.
pub fn require_waits(
    tally: &mut Tally,
    device: &Device,
    gate: &Gated<'_>,
    case: &str,
    batches: &[DeviceArray],
) -> Result<(), Error> {
    if !device.has_queues() {
        for batch in batches {
            require(tally, batch.sync_event().is_null(), || {
                "there is an event on a device without queues".into()
            })?;
            require_ready(tally, device, batch, true)?;
            device.wait_on(batch, std::ptr::null_mut())?;
            device.synchronize(batch)?;
        }
        return Ok(());
    }
    let careful = Queue::new(device)?;
    let careless = Queue::new(device)?;
    let _open_at_last = OpenAtLast(gate);
    for batch in batches {
        require(tally, !batch.sync_event().is_null(), || {
            "sync_event is NULL".into()
        })?;
        require_ready(tally, device, batch, false)?;
        device.wait_on(batch, careful.handle())?;
        careful.read(case, batch)?;
    }
    // While this one completes, the other one would have, too.
    for batch in batches {
        careless.read(case, batch)?;
    }
    require_compared(
        tally,
        "the read on a queue that has not waited",
        careless.verify(OLD)?,
    )?;
    require(tally, !careful.is_idle()?, || {
        "a read on a queue that waits is done, and the gate is shut".into()
    })?;
    gate.open()?;
    require_compared(
        tally,
        "the read on a queue that has waited",
        careful.verify(NEW)?,
    )?;
    for batch in batches {
        device.synchronize(batch)?;
        require_ready(tally, device, batch, true)?;
    }
    Ok(())
}

/// The negative control: with the gate shut a queue that has not waited reads the old data, at once.
/// Opens the gate then. The device has queues.
pub fn require_old_data_without_wait(
    tally: &mut Tally,
    device: &Device,
    gate: &Gated<'_>,
    case: &str,
    batches: &[DeviceArray],
) -> Result<(), Error> {
    let careless = Queue::new(device)?;
    let _open_at_last = OpenAtLast(gate);
    for batch in batches {
        careless.read(case, batch)?;
    }
    require_compared(
        tally,
        "the read on a queue that has not waited",
        careless.verify(OLD)?,
    )?;
    for batch in batches {
        require_ready(tally, device, batch, false)?;
    }
    gate.open()
}
