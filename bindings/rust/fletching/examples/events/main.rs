// SPDX-License-Identifier: Apache-2.0

//! Imports an array while it is still being written, and makes a stream wait for it. The host waits
//! only when it needs the result.
//!
//! Prints: 1000 values, the last is 7

mod cuda;
mod export;

use fletching::{DeviceArray, Error};

fn main() -> Result<(), Error> {
    cuda::use_device(0)?;
    let (theirs, ours) = (cuda::stream()?, cuda::stream()?);
    // In a real program, a C function of another library fills the struct.
    let raw = export::produce(1000, &theirs)?.into_raw();

    // SAFETY: the array was just exported, and no other code releases it.
    let array = unsafe { DeviceArray::from_raw(raw) };
    let mut values = vec![0i8; array.length() as usize];
    array.wait_on(&ours)?;
    cuda::copy_to_host(&mut values, array.buffers()[1], &ours)?;
    array.release_after(&ours)?; // not before the copy is done

    cuda::synchronize(&ours)?;
    println!("{} values, the last is {}", values.len(), values[999]);
    Ok(())
}
