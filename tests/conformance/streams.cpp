// SPDX-License-Identifier: Apache-2.0
//
// Streams: the subject imports one, and its exported stream is read to the end.
#include "streams.hpp"

#include "rebuilt.hpp"
#include "run.hpp"

namespace fletching::conformance {
namespace {

int export_stream(const char* name, ArrowArrayStream* out) {
  return FletchingHostileExportStream(name, out, nullptr);
}
int export_stream(const char* name, ArrowDeviceArrayStream* out) {
  return FletchingHostileExportDeviceStream(name, out, nullptr);
}

Answer pass(const FletchingSubject& subject, ArrowArrayStream* in, ArrowArrayStream* out) {
  return ask(subject, subject.stream, in, out);
}
Answer pass(const FletchingSubject& subject, ArrowDeviceArrayStream* in,
            ArrowDeviceArrayStream* out) {
  return ask(subject, subject.device_stream, in, out);
}

template <class Raw>
bool is_supported(const FletchingSubject& subject) {
  if constexpr (std::is_same_v<Raw, ArrowArrayStream>) {
    return subject.stream != nullptr;
  } else {
    return subject.device_stream != nullptr;
  }
}

/// Reads one of the peer's streams through the subject, and releases another stream unread.
template <class Raw>
void play_peers(Run& run, std::int32_t party) {
  each_peer(run, party, is_supported<Raw>(run.subject), [&](Case& played, const Peer& peer) {
    {
      Held<Raw> in;
      Held<Raw> out;
      export_stream(played.c_str(), &in.value);
      const Answer answer = pass(run.subject, &in.value, &out.value);
      judge_stream(played, peer, answer, out.value, played.is("stream.empty") ? 0 : kBatches);
    }
    expect_finished(played);
    Held<Raw> in;
    Held<Raw> unread;
    export_stream(played.c_str(), &in.value);
    (void)pass(run.subject, &in.value, &unread.value);
  });
}

void play_data(Run& run) {
  each_data(run, kFletchingCorpusStream, run.subject.stream != nullptr,
            [&](Case& played, const Data& data) {
              Held<ArrowArrayStream> in;
              Held<ArrowArrayStream> out;
              played.call("export", FletchingCorpusExportStream, played.c_str(), &in.value);
              Answer answer = pass(run.subject, &in.value, &out.value);
              std::int64_t batches = 0;
              const bool is_passed = answer.code == 0;
              if (is_passed)
                answer = read_all(played, out.value, &batches, [](const ArrowArray&) {});
              played.answered(answer, true);
              const bool is_good = FletchingCorpusError(data.index) == 0;
              if (!is_passed && is_good) return played.expect_accepted(answer);
              const bool has_read_ahead = !is_passed && rebuilds(run.subject);
              if ((has_read_ahead || batches == FletchingCorpusBatches(data.index)) &&
                  played.has_code(answer, FletchingCorpusError(data.index))) {
                return;
              }
              played.wrong("expected " + std::to_string(FletchingCorpusBatches(data.index)) +
                           " batches and errno " +
                           std::to_string(FletchingCorpusError(data.index)) + ", got " +
                           std::to_string(batches) + " and " + std::to_string(answer.code) + ": " +
                           answer.text);
            });
}

int consume(const char* name, ArrowArrayStream* stream, FletchingMessage* message) {
  return FletchingHostileConsumeStream(name, kBatches, stream, message);
}
int consume(const char* name, ArrowDeviceArrayStream* stream, FletchingMessage* message) {
  return FletchingHostileConsumeDeviceStream(name, kBatches, stream, message);
}

/// Passes a valid stream through the subject to a consumer of the peer.
template <class Raw>
void play_consumer(Run& run, Case& played, const Peer& peer) {
  if (!is_supported<Raw>(run.subject)) return;
  Held<Raw> in;
  Held<Raw> out;
  export_stream("stream.good", &in.value);
  judge(played, peer, pass(run.subject, &in.value, &out.value), true);
  if (played.is_wrong()) return;
  played.call("the consumer", [&](FletchingMessage* message) {
    return consume(played.c_str(), &out.value, message);
  });
}

}  // namespace

void play_streams(Run& run) {
  play_peers<ArrowArrayStream>(run, kFletchingHostileStream);
  play_data(run);
}

void play_device_streams(Run& run) {
  play_peers<ArrowDeviceArrayStream>(run, kFletchingHostileStream);
  play_peers<ArrowDeviceArrayStream>(run, kFletchingHostileDeviceStream);
}

void play_stream_consumers(Run& run) {
  const bool is_any = run.subject.stream != nullptr || run.subject.device_stream != nullptr;
  each_peer(run, kFletchingHostileStreamConsumer, is_any, [&](Case& played, const Peer& peer) {
    play_consumer<ArrowArrayStream>(run, played, peer);
    play_consumer<ArrowDeviceArrayStream>(run, played, peer);
  });
}

}  // namespace fletching::conformance
