// SPDX-License-Identifier: Apache-2.0

//! Replays every trace of `fletching traces` (tests/conformance/README.md) against both sides. These are
//! unit tests of the crate, because a replay reads private state.

mod consumer;
mod consumer_peer;
mod producer;
mod source;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_int;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use serde_json::{json, Value};

/// The build writes the traces to this folder.
fn traces(side: &str) -> Vec<Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../build/rust/traces");
    let path = format!("{root}/{side}.json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{path}: {error}: run `fletching traces --output {root}`"));
    let Value::Array(traces) = serde_json::from_str::<Value>(&text).unwrap()["traces"].take()
    else {
        panic!("{path}: expected a list of traces");
    };
    traces
}

/// With a window of 0, no requests are owed, however long the stream is.
#[test]
fn zero_window_owes_no_requests() {
    use crate::{Array, ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray};
    use smol::{future::zip, stream, stream::StreamExt};

    let schema = crate::SchemaBuilder::new("i").build().unwrap();
    let batches = stream::iter((1..4).map(|n| Ok(DeviceArray::from(Array::from(vec![n])))));
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(0));
    stream.request(3).unwrap();
    let sending = AsyncProducer::new(schema, ArrowDeviceType::CPU, batches).send(handler);
    let taking = async {
        for _ in 0..3 {
            assert!(stream.next().await.unwrap().is_ok());
            assert_eq!(stream.core().lock().owed, 0);
        }
        assert!(stream.next().await.is_none());
    };
    smol::block_on(zip(sending, taking)).0.unwrap();
}

/// A schema or a batch, and what happened to it.
#[derive(Default)]
struct TrackedObject {
    number: usize,
    outcomes: Mutex<Vec<&'static str>>,
    arrays: AtomicUsize,
    released: AtomicUsize,
}

impl TrackedObject {
    fn new(number: usize) -> Arc<Self> {
        Arc::new(Self {
            number,
            ..Self::default()
        })
    }

    fn record(&self, outcome: &'static str) {
        self.outcomes.lock().unwrap().push(outcome);
    }

    /// What happened to it, exactly once. Anything else is a difference.
    fn outcome(&self, freed: &str) -> String {
        match self.outcomes.lock().unwrap()[..] {
            ["freed"] => freed.into(),
            [outcome] => outcome.into(),
            ref outcomes => format!("{outcomes:?}"),
        }
    }
}

/// The cursor over the steps of a trace.
struct Replay {
    trace: Value,
    cursor: Mutex<Cursor>,
}

#[derive(Default)]
struct Cursor {
    at: usize,
    depth: usize,
    expected: VecDeque<Value>,
    counts: BTreeMap<String, u64>,
    state: String,
    failed: Option<String>,
}

impl Replay {
    fn new(trace: &Value) -> Self {
        let cursor = Cursor {
            state: "created".into(),
            ..Cursor::default()
        };
        Self {
            trace: trace.clone(),
            cursor: Mutex::new(cursor),
        }
    }

    /// Records a difference. The first one ends the trace: no further step is played.
    fn fail(&self, text: &str) {
        let mut cursor = self.cursor.lock().unwrap();
        let at = cursor.at.saturating_sub(1);
        let step = &self.trace["steps"][at]["event"];
        let text = format!("{}: step {at}, {step}: {text}", self.trace["name"]);
        cursor.failed.get_or_insert(text);
    }

    fn failed(&self) -> bool {
        self.cursor.lock().unwrap().failed.is_some()
    }

    fn next(&self) -> Option<Value> {
        let cursor = self.cursor.lock().unwrap();
        if cursor.failed.is_some() {
            return None;
        }
        self.trace["steps"].get(cursor.at).cloned()
    }

    fn expects(&self) -> usize {
        self.cursor.lock().unwrap().expected.len()
    }

    /// Whether this step expects another call of this name, or another notification.
    fn expects_another(&self, name: &str) -> bool {
        let cursor = self.cursor.lock().unwrap();
        let is_same = |what: &Value| match name {
            "notify" => what.get("notify").is_some(),
            name => what["call"] == name,
        };
        cursor.expected.iter().any(is_same)
    }

    /// Checks a call or notification by the tested side.
    fn happened(&self, what: &Value) {
        let mut cursor = self.cursor.lock().unwrap();
        if cursor.expected.front() != Some(what) {
            let front = cursor.expected.front().cloned();
            drop(cursor);
            return self.fail(&format!("{what} instead of {front:?}"));
        }
        cursor.expected.pop_front();
        let name = what["call"].as_str().unwrap_or("notify");
        let is_end = name == "on_next_task" && what["task"].is_null();
        let name = if is_end { "end" } else { name };
        *cursor.counts.entry(name.into()).or_default() += 1;
    }

    /// Performs one step, from its event to its result.
    fn perform(&self, step: &Value, work: impl FnOnce() -> c_int) {
        let outer = {
            let mut cursor = self.cursor.lock().unwrap();
            cursor.at += 1;
            cursor.depth += 1;
            cursor.state = step["state"].as_str().unwrap().into();
            let lists = ["calls", "notifications"].map(|kind| step[kind].as_array().cloned());
            let expected = lists.into_iter().flatten().flatten().collect();
            std::mem::replace(&mut cursor.expected, expected)
        };
        let result = work();
        let missing = self.cursor.lock().unwrap().expected.front().cloned();
        if let Some(missing) = missing {
            self.fail(&format!("did not {missing}"));
        }
        if step["result"]
            .as_i64()
            .is_some_and(|expected| expected != i64::from(result))
        {
            self.fail(&format!("returned {result} instead of {}", step["result"]));
        }
        let mut cursor = self.cursor.lock().unwrap();
        cursor.expected = outer;
        cursor.depth -= 1;
    }

    /// The name of the expected state, or None while a step is being played.
    fn state(&self) -> Option<String> {
        let cursor = self.cursor.lock().unwrap();
        (cursor.depth == 0 && cursor.failed.is_none()).then(|| cursor.state.clone())
    }

    fn compare_final(&self, schema: &str, tasks: &[String], codes: &[c_int]) -> Option<String> {
        if !self.failed() {
            let last = &self.trace["finally"];
            let count = |name: &String| {
                self.cursor
                    .lock()
                    .unwrap()
                    .counts
                    .get(name)
                    .copied()
                    .unwrap_or(0)
            };
            for (name, expected) in last["calls"].as_object().unwrap() {
                if json!(count(name)) != *expected {
                    self.fail(&format!(
                        "{name}: {} calls instead of {expected}",
                        count(name)
                    ));
                }
            }
            let code = last["code"].as_i64().into_iter().collect::<Vec<_>>();
            let found = (json!(schema), json!(tasks), json!(codes));
            let expected = (last["schema"].clone(), last["tasks"].clone(), json!(code));
            if found != expected {
                self.fail(&format!("finally {found:?} instead of {expected:?}"));
            }
        }
        self.cursor.lock().unwrap().failed.clone()
    }
}

/// Plays all traces of a side and reports all differences.
fn play_all(side: &str, count: usize, play: impl Fn(&Value) -> Option<String>) {
    let traces = traces(side);
    // All traces take hours under Miri.
    let step = if cfg!(miri) { 16 } else { 1 };
    let failed: Vec<_> = traces.iter().step_by(step).filter_map(play).collect();
    assert!(
        failed.is_empty(),
        "{} traces differ:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert_eq!(traces.len(), count);
}

/// Returns the number of a task, or a code.
fn number(step: &Value, key: &str) -> i64 {
    step[key].as_i64().unwrap_or(0)
}

/// Threads of a hung trace cannot be stopped, so this aborts the process.
fn hang(who: &str) -> ! {
    eprintln!("{who} hangs");
    std::process::abort();
}
