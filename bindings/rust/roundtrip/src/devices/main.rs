// SPDX-License-Identifier: Apache-2.0

//! Every backend of the reference producer, behind its gate, through the crate `fletching`
//! (`tests/roundtrip/README.md`).
//!
//! `fletching-roundtrip-devices-rust [--chain] [BACKEND...]`: --chain runs nothing but the chain.
//! Backends: those that are named, else all.

mod device;
mod gated;
mod hops;
mod waiting;

use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use fletching::{
    ArrowDeviceType, AsyncOptions, AsyncStream, DeviceArray, DeviceArrayStream, Error, Nested,
    Owner, Schema, SchemaBuilder,
};
use fletching_testing::cells::{Subject, Tally};
use fletching_transit_rust::dump::dump;
use fletching_transit_rust::producer::Producer;
use futures_lite::future::block_on;
use futures_lite::StreamExt;

use device::Device;
use gated::Gated;
use waiting::{require, require_equal, require_old_data_without_wait, require_waits};

/// One of each layout; `devices.py` has the same.
const CASES: [&str; 8] = [
    "int32",
    "utf8",
    "utf8_view",
    "list",
    "struct",
    "dictionary",
    "dense_union",
    "record_batch",
];
const BATCHES: i64 = 3;
/// Before the third.
const FAIL_AT: i64 = 2;

/// The releases that Rust has seen, by objects that it attached.
#[derive(Default)]
struct Releases {
    hooked: i64,
    seen: Arc<AtomicI64>,
}

struct Hook(Arc<AtomicI64>);

impl Drop for Hook {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Releases {
    fn hook<R: Nested>(&mut self, target: &mut Owner<R>) -> Result<(), Error> {
        target.attach(Hook(Arc::clone(&self.seen)))?;
        self.hooked += 1;
        Ok(())
    }

    fn seen(&self) -> i64 {
        self.seen.load(Ordering::SeqCst)
    }
}

/// What one cell works with.
struct Run<'a> {
    device: &'a Device,
    case: &'a str,
    direction: &'a Direction,
    tally: &'a mut Tally,
    releases: Releases,
}

struct Direction {
    name: &'static str,
    work: fn(&mut Run<'_>) -> Result<(), Error>,
    /// Read without a wait, and see the old data.
    control: bool,
    /// The stream does, midway.
    fails: bool,
}

const fn direction(
    name: &'static str,
    work: fn(&mut Run<'_>) -> Result<(), Error>,
    control: bool,
    fails: bool,
) -> Direction {
    Direction {
        name,
        work,
        control,
        fails,
    }
}

const DIRECTIONS: [Direction; 11] = [
    direction("array", run_array, false, false),
    direction("array_control", run_array, true, false),
    direction("stream", run_stream, false, false),
    direction("stream_control", run_stream, true, false),
    direction("stream_failure", run_stream, false, true),
    direction("stream_failure_control", run_stream, true, true),
    direction("async", run_async, false, false),
    direction("async_control", run_async, true, false),
    direction("async_failure", run_async, false, true),
    direction("async_failure_control", run_async, true, true),
    direction("chain", run_chain, false, false),
];

impl Run<'_> {
    fn fail_at(&self) -> i64 {
        if self.direction.fails {
            FAIL_AT
        } else {
            -1
        }
    }

    /// Before any release is hooked: a hook is another `private_data`.
    fn require_dumps(&mut self, schema: &Schema, batches: &[DeviceArray]) -> Result<(), Error> {
        for batch in batches {
            let lines = self.device.producer.verify_dump(&dump(schema, batch)?)?;
            require(self.tally, lines > 0, || "the dump compared nothing".into())?;
            self.tally.asserted += lines as u64;
        }
        Ok(())
    }

    /// The batches as received, under hooks, then the steps of the direction.
    fn require_batches(
        &mut self,
        gate: &Gated<'_>,
        schema: &mut Schema,
        batches: &mut [DeviceArray],
    ) -> Result<(), Error> {
        self.releases.hook(schema)?;
        for batch in batches.iter_mut() {
            self.releases.hook(batch)?;
        }
        let steps = match self.direction.control {
            true => require_old_data_without_wait,
            false => require_waits,
        };
        steps(self.tally, self.device, gate, self.case, batches)?;
        for batch in batches {
            let producer = &self.device.producer;
            producer.verify_array(&self.device.backend, self.case, schema, batch)?;
            self.tally.asserted += 1;
        }
        Ok(())
    }

    /// The errno value and the text are the producer's.
    fn require_failure(&mut self, ended: Option<&Error>) -> Result<(), Error> {
        require(self.tally, ended.is_some(), || {
            "the stream ends, and has to fail".into()
        })?;
        let error = ended.expect("it was looked at");
        let text = format!(
            "case {}: the stream fails on purpose before batch {FAIL_AT}",
            self.case
        );
        require_equal(
            self.tally,
            "the errno value",
            i64::from(error.code()),
            i64::from(libc::EIO),
        )?;
        require(self.tally, error.message() == text, || {
            format!("the text is '{}', expected '{text}'", error.message())
        })
    }

    /// The batches and the failure as a stream of ours: the producer has to find both unchanged.
    fn require_kept(
        &mut self,
        device_type: ArrowDeviceType,
        schema: Schema,
        batches: Vec<DeviceArray>,
        failure: Error,
    ) -> Result<(), Error> {
        let content: Vec<_> = batches.into_iter().map(Ok).chain([Err(failure)]).collect();
        let stream = DeviceArrayStream::from_batches(schema, device_type, content)?;
        let producer = &self.device.producer;
        producer.verify_stream(&self.device.backend, self.case, BATCHES, FAIL_AT, stream)?;
        self.tally.asserted += 1;
        Ok(())
    }

    /// What a stream has handed out, and how it ended.
    fn require_content(
        &mut self,
        gate: &Gated<'_>,
        device_type: ArrowDeviceType,
        mut schema: Schema,
        content: Vec<Result<DeviceArray, Error>>,
        is_foreign: bool,
    ) -> Result<(), Error> {
        let mut batches = Vec::new();
        let mut ended = None;
        for batch in content {
            match batch {
                Ok(batch) => batches.push(batch),
                Err(error) => ended = Some(error),
            }
        }
        let expected = if self.direction.fails {
            FAIL_AT
        } else {
            BATCHES
        };
        require_equal(
            self.tally,
            "the number of batches",
            batches.len() as i64,
            expected,
        )?;
        if is_foreign {
            self.require_dumps(&schema, &batches)?;
        }
        if self.direction.fails {
            self.require_failure(ended.as_ref())?;
        }
        self.require_batches(gate, &mut schema, &mut batches)?;
        match ended {
            Some(failure) if self.direction.fails => {
                self.require_kept(device_type, schema, batches, failure)
            }
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

fn run_array(run: &mut Run<'_>) -> Result<(), Error> {
    let gate = Gated::new(run.device)?;
    let (mut schema, array) = gate.export_array(run.case)?;
    let mut arrays = [array];
    run.require_dumps(&schema, &arrays)?;
    run.require_batches(&gate, &mut schema, &mut arrays)
}

fn run_stream(run: &mut Run<'_>) -> Result<(), Error> {
    let gate = Gated::new(run.device)?;
    let stream = gate.export_stream(run.case, BATCHES, run.fail_at())?;
    let device_type = stream.device_type();
    let mut reader = stream.into_iter();
    let schema = reader.schema()?;
    // The batches outlive the stream.
    let content = reader.collect();
    run.require_content(&gate, device_type, schema, content, true)
}

fn run_async(run: &mut Run<'_>) -> Result<(), Error> {
    let gate = Gated::new(run.device)?;
    // A failure overtakes what was requested and is not read yet. One batch at a time: none is lost.
    let window = if run.direction.fails {
        1
    } else {
        BATCHES as u32
    };
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(window));
    gate.run_async(run.case, BATCHES, run.fail_at(), handler)?;
    let read = block_on(async {
        let schema = SchemaBuilder::from_schema(stream.schema().await?)?.build()?;
        Ok::<_, Error>((schema, stream.device_type(), (&mut stream).collect().await))
    });
    let (schema, device_type, content) = read?;
    drop(stream);
    run.require_content(&gate, device_type, schema, content, false)?;
    // SAFETY: takes nothing.
    unsafe { (run.device.functions.await_async)() };
    Ok(())
}

/// All languages, this program, and the first of them again, while the gate is shut.
fn run_chain(run: &mut Run<'_>) -> Result<(), Error> {
    let hops = hops::load()?;
    let before: Vec<_> = hops.iter().map(hops::Hop::exported).collect();
    {
        let gate = Gated::new(run.device)?;
        let (mut schema, array) = gate.export_array(run.case)?;
        let mut arrays = [array];
        run.require_dumps(&schema, &arrays)?;
        let [mut array] = arrays;
        let event = array.sync_event();
        for hop in &hops {
            (schema, array) = hop.send(schema, array)?;
        }
        run.releases.hook(&mut schema)?;
        run.releases.hook(&mut array)?;
        (schema, array) = hops[0].send(schema, array)?;
        require(run.tally, array.sync_event() == event, || {
            "sync_event is another pointer than before".into()
        })?;
        arrays = [array];
        run.require_batches(&gate, &mut schema, &mut arrays)?;
    }
    for (hop, before) in hops.iter().zip(before) {
        let language = &hop.language;
        require(run.tally, hop.exported() > before, || {
            format!("{language} exported nothing")
        })?;
        let what = format!("the number of releases in {language}");
        require_equal(run.tally, &what, hop.released(), hop.exported())?;
    }
    Ok(())
}

/// Everything of the producer has been released, once.
fn require_producer_at_rest(tally: &mut Tally, producer: &Producer) -> Result<(), Error> {
    let counters = producer.counters();
    require_equal(tally, "live_allocations", counters.live_allocations, 0)?;
    require_equal(tally, "live_schemas", counters.live_schemas, 0)?;
    require_equal(tally, "live_arrays", counters.live_arrays, 0)?;
    require_equal(tally, "live_streams", counters.live_streams, 0)?;
    require_equal(
        tally,
        "the producer's released",
        counters.released,
        counters.exported,
    )?;
    require_equal(tally, "double_released", counters.double_released, 0)
}

fn work_on(run: &mut Run<'_>) -> Result<(), Error> {
    // A cell that failed may have left a stream behind.
    // SAFETY: takes nothing.
    unsafe { (run.device.functions.await_async)() };
    run.device.producer.reset_counters();
    (run.direction.work)(run)?;
    require(run.tally, run.releases.hooked > 0, || {
        "nothing was hooked".into()
    })?;
    let (seen, hooked) = (run.releases.seen(), run.releases.hooked);
    require_equal(run.tally, "the number of releases in Rust", seen, hooked)?;
    require_producer_at_rest(run.tally, &run.device.producer)
}

/// Whether the cell is right, or its device is absent.
fn run_cell(device: &Device, case: &str, direction: &Direction) -> bool {
    let mut tally = Tally {
        status: device.status,
        ..Tally::default()
    };
    if device.status == "absent" {
        tally.problems.push(device.description.clone());
    } else {
        let releases = Releases::default();
        let mut run = Run {
            device,
            case,
            direction,
            tally: &mut tally,
            releases,
        };
        let outcome = work_on(&mut run);
        let releases = run.releases.seen();
        tally.releases = releases as u64;
        tally
            .problems
            .extend(outcome.err().map(|error| error.to_string()));
        for problem in &tally.problems {
            eprintln!("{} {case} {}: {problem}", device.backend, direction.name);
        }
    }
    tally.report(Subject::Case(case, &device.backend), direction.name);
    tally.is_good() || device.status == "absent"
}

/// Without queues there is nothing to see too early, and the cases have array and stream already.
fn concerns(direction: &Direction, device: &Device) -> bool {
    let is_one_of_cpu = matches!(direction.name, "async" | "async_failure" | "chain");
    device.has_queues() || is_one_of_cpu
}

fn run_all() -> Result<usize, Error> {
    let producer = Producer::load().map_err(|problem| Error::new(libc::ENOENT, problem))?;
    let (flags, mut backends): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|argument| argument == "--chain");
    if backends.is_empty() {
        backends = producer.backends();
    }
    let mut failed = usize::from(backends.is_empty());
    for backend in &backends {
        let device = Device::new(producer, backend)?;
        println!("{backend}: {}: {}", device.status, device.description);
        for case in CASES {
            let wanted = |each: &&Direction| flags.is_empty() || each.name == "chain";
            for direction in DIRECTIONS.iter().filter(wanted) {
                if concerns(direction, &device) && !run_cell(&device, case, direction) {
                    failed += 1;
                }
            }
        }
    }
    println!("{failed} cells failed");
    Ok(failed)
}

fn main() -> ExitCode {
    match run_all() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rust: {error}");
            ExitCode::FAILURE
        }
    }
}
