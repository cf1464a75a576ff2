// SPDX-License-Identifier: Apache-2.0
//
// Schemas and arrays: the subject imports one and exports it again.
#include <algorithm>
#include <array>
#include <optional>

#include "rebuilt.hpp"
#include "run.hpp"

namespace fletching::conformance {
namespace {

// Invalid structs that are detected without reading a format. The other cases concern formats.
constexpr std::array<std::string_view, 12> kWrongStructs{"schema.released",
                                                         "schema.format-null",
                                                         "schema.metadata-negative-count",
                                                         "schema.metadata-negative-length",
                                                         "schema.deep",
                                                         "schema.children-negative",
                                                         "schema.children-huge",
                                                         "schema.children-null",
                                                         "schema.child-null",
                                                         "schema.child-released",
                                                         "schema.children-of-primitive",
                                                         "schema.cycle"};

bool has_to_look(const FletchingSubject& subject, std::string_view name) {
  const bool is_struct = std::ranges::find(kWrongStructs, name) != kWrongStructs.end();
  return (subject.promises &
          (is_struct ? FLETCHING_SUBJECT_CHECKS_SCHEMAS : FLETCHING_SUBJECT_CHECKS_FORMATS)) != 0;
}

void play_peer_schemas(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_peer(run, kFletchingHostileSchema, subject.schema != nullptr,
            [&](Case& played, const Peer& peer) {
              Held<ArrowSchema> in;
              Held<ArrowSchema> out;
              FletchingHostileExportSchema(played.c_str(), &in.value, nullptr);
              const Answer answer = ask(subject, subject.schema, &in.value, &out.value);
              judge(played, peer, answer, has_to_look(subject, peer.name));
            });
}

/// Expects an error for an invalid case if the subject reads the invalid part, and otherwise no
/// change.
void judge_data(Case& played, const Data& data, const Answer& answer, bool reads) {
  played.answered(answer, reads || !data.is_refused);
  if (!data.is_refused) played.expect_accepted(answer);
  if (data.is_refused && reads && answer.code == 0) {
    played.wrong("expected an error, got success", data.rule);
  }
}

void play_data_schemas(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_data(run, kFletchingCorpusSchema, subject.schema != nullptr,
            [&](Case& played, const Data& data) {
              Held<ArrowSchema> in;
              Held<ArrowSchema> out;
              played.call("export", FletchingCorpusExportSchema, played.c_str(), &in.value);
              std::optional<Original> original;
              if (!data.is_refused) original.emplace(subject, in.value);
              const Answer answer = ask(subject, subject.schema, &in.value, &out.value);
              judge_data(played, data, answer,
                         (subject.promises & FLETCHING_SUBJECT_CHECKS_FORMATS) != 0);
              if (answer.code != 0) return;
              const ArrowSchema compared = original ? original->schema(out.value) : out.value;
              played.call("schema", FletchingCorpusCompareSchema, played.c_str(), &compared);
            });
}

/// A schema and an array on their way through the subject.
struct ArrayCall {
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  Held<ArrowSchema> out_schema;
  Held<ArrowDeviceArray> out;

  Answer pass(const FletchingSubject& subject) {
    return ask(subject, subject.array, &schema.value, &array.value, &out_schema.value, &out.value);
  }
};

void play_peer_arrays(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_peer(
      run, kFletchingHostileArray, subject.array != nullptr, [&](Case& played, const Peer& peer) {
        ArrayCall call;
        FletchingHostileExportArray(played.c_str(), &call.schema.value, &call.array.value, nullptr);
        const Answer answer = call.pass(subject);
        judge(played, peer, answer, peer.name == "array.released");
        if (answer.code == 0 && peer.outcome == kFletchingHostileAccepted) {
          check_values(played, call.out.value.array);
        }
      });
}

/// Checks the array and its data with the rules of the validation layer.
void check(const ArrayCall& call) {
  const FletchingValidateOptions options = layer(FLETCHING_VALIDATE_DATA);
  (void)FletchingCheckDeviceArray(&call.out_schema.value, &call.out.value, &options, nullptr,
                                  nullptr);
}

/// The promise under which a subject must find the fault in the array.
std::uint32_t promise_for(const Data& data) {
  const char* const level = FletchingCorpusText(data.index, "level");
  const bool is_data = level != nullptr && std::string_view(level) == "data";
  return is_data ? FLETCHING_SUBJECT_CHECKS_DATA : FLETCHING_SUBJECT_CHECKS_ARRAYS;
}

void play_data_arrays(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_data(
      run, kFletchingCorpusArray, subject.array != nullptr, [&](Case& played, const Data& data) {
        ArrayCall call;
        played.call("export", FletchingCorpusExportSchema, played.c_str(), &call.schema.value);
        played.call("export", FletchingCorpusExportArray, played.c_str(), &call.array.value);
        std::optional<Original> original;
        if (!data.is_refused) original.emplace(subject, call.schema.value, call.array.value.array);
        const Answer answer = call.pass(subject);
        judge_data(played, data, answer, (subject.promises & promise_for(data)) != 0);
        if (answer.code != 0) return;
        if (!original) {
          played.call("schema", FletchingCorpusCompareSchema, played.c_str(),
                      &call.out_schema.value);
          played.call("array", FletchingCorpusCompareArray, played.c_str(), &call.out.value);
          return;
        }
        check(call);
        const ArrowSchema schema = original->schema(call.out_schema.value);
        const ArrowDeviceArray array = original->array(call.out.value);
        played.call("schema", FletchingCorpusCompareSchema, played.c_str(), &schema);
        played.call("array", FletchingCorpusCompareArray, played.c_str(), &array);
      });
}

/// Takes a child, which may be missing, of an array whose counts may be wrong.
void take_child(Case& played, const FletchingSubject& subject, std::int64_t index, bool is_there) {
  Held<ArrowSchema> schema;
  Held<ArrowDeviceArray> array;
  Held<ArrowDeviceArray> child;
  FletchingHostileExportArray(played.c_str(), &schema.value, &array.value, nullptr);
  const Answer answer =
      ask(subject, subject.child, &schema.value, &array.value, index, &child.value);
  played.answered(answer, is_there);
  if (index != 0 && index != 1 && answer.code == 0) {
    played.wrong("child " + std::to_string(index) + ": expected an error");
  }
  if (!is_there) return;
  played.expect_accepted(answer);
  if (answer.code == 0) check_values(played, child.value.array);
}

}  // namespace

void play_schemas(Run& run) {
  play_peer_schemas(run);
  play_data_schemas(run);
}

void play_arrays(Run& run) {
  play_peer_arrays(run);
  play_data_arrays(run);
}

void play_children(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_peer(run, kFletchingHostileArray, subject.child != nullptr,
            [&](Case& played, const Peer& /*peer*/) {
              const bool has_both = played.is("array.good-children");
              for (const std::int64_t index :
                   {std::int64_t{-1}, std::int64_t{1} << 40, std::int64_t{0}, std::int64_t{1}}) {
                take_child(played, subject, index, has_both && index >= 0 && index < 2);
                expect_finished(played);
              }
            });
}

void play_array_consumers(Run& run) {
  const FletchingSubject& subject = run.subject;
  each_peer(run, kFletchingHostileArrayConsumer, subject.array != nullptr,
            [&](Case& played, const Peer& peer) {
              ArrayCall call;
              FletchingHostileExportArray("array.good-children", &call.schema.value,
                                          &call.array.value, nullptr);
              const auto theirs = call.array.value.array.release;
              judge(played, peer, call.pass(subject), true);
              if (played.is_wrong()) return;
              // If the subject passed on the peer's struct, the call would test the peer, not the
              // subject.
              if (call.out.value.array.release == theirs) return played.not_supported();
              played.call("the consumer", FletchingHostileConsumeArray, played.c_str(),
                          &call.out.value);
            });
}

}  // namespace fletching::conformance
