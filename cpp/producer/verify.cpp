#include "verify.hpp"

#include <cstring>
#include <deque>
#include <string>

#include "export.hpp"
#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

// The node being compared: {"case struct", "/2/0"}. The path of the root is empty.
struct Place {
  std::string subject;
  std::string path;

  Place Below(const std::string& name) const { return {subject, path + "/" + name}; }
};

[[noreturn]] void Differ(const Place& place, const std::string& what) {
  Fail(EBADMSG, place.subject + ": " + (place.path.empty() ? "/" : place.path) + " " + what);
}

[[noreturn]] void Differ(const std::string& subject, const std::string& what) {
  Fail(EBADMSG, subject + " " + what);
}

void CheckNumber(const Place& place, const std::string& field, int64_t seen, int64_t expected) {
  if (seen == expected) return;
  Differ(place, field + " is " + std::to_string(seen) + ", expected " + std::to_string(expected));
}

// A pointer to what comes below, or to a dictionary. What is not expected is not looked at.
void CheckPresent(const Place& place, const std::string& field, const void* seen, bool expected) {
  if ((seen != nullptr) == expected) return;
  Differ(place,
         field + (expected ? " is NULL, expected a pointer" : " is not NULL, expected NULL"));
}

std::string HexByte(uint8_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// NULL and "" are the same name, but no format.
void CheckText(const Place& place, const std::string& field, const char* seen,
               const std::string& expected) {
  if (std::strcmp(seen, expected.c_str()) == 0) return;
  const std::string fault = IsUtf8(seen) ? "" : " (not valid UTF-8)";
  Differ(place,
         field + " is '" + ForeignText(seen) + "'" + fault + ", expected '" + expected + "'");
}

// --- Metadata
// ----------------------------------------------------------------------------------------

// Walks a foreign metadata block beside the expected one and stops at the first difference, so that
// it never reads further than a right block reaches.
class MetadataCheck {
 public:
  MetadataCheck(const Place& place, const char* block) : place_(place), next_(block) {}

  void Count(size_t expected) { Number("the number of pairs", expected); }

  void Text(const std::string& what, const std::string& expected) {
    Number("the length of " + what, expected.size());
    if (std::memcmp(next_, expected.data(), expected.size()) != 0) {
      Differ(place_, "schema.metadata: " + what + " is '" + std::string(next_, expected.size()) +
                         "', expected '" + expected + "'");
    }
    next_ += expected.size();
  }

 private:
  void Number(const std::string& what, size_t expected) {
    int32_t seen = 0;
    std::memcpy(&seen, next_, sizeof(seen));
    next_ += sizeof(seen);
    if (seen < 0)
      Differ(place_, "schema.metadata: " + what + " is negative: " + std::to_string(seen));
    CheckNumber(place_, "schema.metadata: " + what, seen, static_cast<int64_t>(expected));
  }

  const Place& place_;
  const char* next_;
};

void CheckMetadata(const Place& place, const char* block, const Node& node) {
  CheckPresent(place, "schema.metadata", block, !node.metadata.empty());
  if (block == nullptr) return;
  MetadataCheck check(place, block);
  check.Count(node.metadata.size());
  for (size_t i = 0; i < node.metadata.size(); ++i) {
    check.Text("key " + std::to_string(i), node.metadata[i].first);
    check.Text("value " + std::to_string(i), node.metadata[i].second);
  }
}

// --- Trees
// -------------------------------------------------------------------------------------------

void CheckNode(Backend& backend, const Place& place, const Node& node, const ArrowArray& array);
void CheckNode(Backend& backend, const Place& place, const Node& node, const ArrowSchema& schema);

// The children and the dictionary of a schema or an array. `kind`: "schema".
template <class Struct>
void CheckBelow(Backend& backend, const Place& place, const std::string& kind, const Node& node,
                const Struct& above) {
  const size_t count = node.children.size();
  CheckNumber(place, kind + ".n_children", above.n_children, static_cast<int64_t>(count));
  if (count > 0) CheckPresent(place, kind + ".children", above.children, true);
  for (size_t i = 0; i < count; ++i) {
    const std::string index = std::to_string(i);
    std::string child = kind;
    child.append(".children[").append(index).append("]");
    CheckPresent(place, child, above.children[i], true);
    CheckNode(backend, place.Below(index), node.children[i], *above.children[i]);
  }
  CheckPresent(place, kind + ".dictionary", above.dictionary, node.dictionary != nullptr);
  if (node.dictionary) CheckNode(backend, place.Below("d"), *node.dictionary, *above.dictionary);
}

void CheckNode(Backend& backend, const Place& place, const Node& node, const ArrowSchema& schema) {
  if (schema.release == nullptr) Differ(place, "schema is released");
  CheckPresent(place, "schema.format", schema.format, true);
  CheckText(place, "schema.format", schema.format, node.format);
  CheckText(place, "schema.name", schema.name == nullptr ? "" : schema.name, node.name);
  CheckMetadata(place, schema.metadata, node);
  CheckNumber(place, "schema.flags", schema.flags, node.flags);
  CheckBelow(backend, place, "schema", node, schema);
}

void CheckBuffer(Backend& backend, const Place& place, const std::string& name, const void* buffer,
                 const std::optional<Bytes>& expected) {
  CheckPresent(place, name, buffer, expected.has_value());
  if (!expected) return;
  // Looked at before the bytes are: foreign memory may be shorter.
  const void* origin = OriginOf(buffer);
  if (origin == nullptr) Differ(place, name + " is not the memory that was exported");
  if (origin != &*expected) Differ(place, name + " is the memory of another exported buffer");
  if (expected->empty()) return;
  Bytes seen(expected->size());
  backend.CopyFrom(seen.data(), buffer, seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == (*expected)[i]) continue;
    Differ(place, name + ": byte " + std::to_string(i) + " is " + HexByte(seen[i]) + ", expected " +
                      HexByte((*expected)[i]));
  }
}

void CheckNode(Backend& backend, const Place& place, const Node& node, const ArrowArray& array) {
  if (array.release == nullptr) Differ(place, "array is released");
  CheckNumber(place, "array.length", array.length, node.length);
  CheckNumber(place, "array.null_count", array.null_count, node.null_count);
  CheckNumber(place, "array.offset", array.offset, node.offset);
  CheckNumber(place, "array.n_buffers", array.n_buffers, static_cast<int64_t>(node.buffers.size()));
  if (!node.buffers.empty()) CheckPresent(place, "array.buffers", array.buffers, true);
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    Backend& home = IsInHostMemory(node, i) ? *CpuBackend() : backend;
    CheckBuffer(home, place, "buffer " + std::to_string(i), array.buffers[i], node.buffers[i]);
  }
  CheckBelow(backend, place, "array", node, array);
}

// Waits for the event, too: what comes after reads the buffers.
void CheckEvent(const Backend& backend, const Place& root, const void* sync_event) {
  CheckPresent(root, "sync_event", sync_event, backend.HasQueues());
  if (sync_event == nullptr) return;
  Event* event = FindEvent(sync_event);
  if (event == nullptr) Differ(root, "sync_event is not the event that was exported");
  event->Wait();
}

void CheckDeviceArray(Backend& backend, const std::string& subject, const Node& node,
                      const ArrowDeviceArray& array) {
  const Place root{subject, ""};
  if (array.array.release == nullptr) Differ(root, "array is released");
  CheckNumber(root, "device_type", array.device_type, backend.DeviceType());
  CheckNumber(root, "device_id", array.device_id, backend.DeviceId());
  CheckEvent(backend, root, array.sync_event);
  for (size_t i = 0; i < 3; ++i) {
    CheckNumber(root, "reserved[" + std::to_string(i) + "]", array.reserved[i], 0);
  }
  CheckNode(backend, root, node, array.array);
}

// --- Streams
// -----------------------------------------------------------------------------------------

// A struct taken over from foreign code, released once.
template <class Struct>
struct Taken {
  Struct value{};

  Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (IsAlive()) Base().release(&Base());
  }

  auto& Base() {
    if constexpr (requires { value.array; }) {
      return value.array;
    } else {
      return value;
    }
  }
  bool IsAlive() { return Base().release != nullptr; }

  void Release(const std::string& subject) {
    if (!IsAlive()) return;
    Base().release(&Base());
    if (!IsAlive()) return;
    Base().release = nullptr;  // once is enough
    Differ(subject, "release did not set release to NULL");
  }
};

std::string LastError(ArrowDeviceArrayStream& stream) {
  if (stream.get_last_error == nullptr) return "(get_last_error is NULL)";
  return ForeignText(stream.get_last_error(&stream));
}

// A call that has to succeed. What a failed call left in `out` is not ours to release.
template <class Struct>
void Pull(const std::string& subject, ArrowDeviceArrayStream& stream,
          int (*callback)(ArrowDeviceArrayStream*, Struct*), Taken<Struct>& out) {
  const int code = callback(&stream, &out.value);
  if (code == 0) return;
  out.value = {};
  Differ(subject, "fails with errno " + std::to_string(code) + ": " + LastError(stream));
}

void CheckCallbacks(const Case& what, const Backend& backend,
                    const ArrowDeviceArrayStream& stream) {
  const std::string subject = "case " + what.name + ": stream";
  const auto check = [&](const std::string& name, bool present) {
    if (!present) Differ(subject, name + " is NULL");
  };
  if (stream.release == nullptr) Differ(subject, "is released");
  check("get_schema", stream.get_schema != nullptr);
  check("get_next", stream.get_next != nullptr);
  check("get_last_error", stream.get_last_error != nullptr);
  if (stream.device_type == backend.DeviceType()) return;
  Differ(subject, "device_type is " + std::to_string(stream.device_type) + ", expected " +
                      std::to_string(backend.DeviceType()));
}

void CheckEnd(const std::string& subject, ArrowDeviceArrayStream& stream) {
  Taken<ArrowDeviceArray> out;
  Pull(subject, stream, stream.get_next, out);
  if (out.IsAlive()) Differ(subject, "is a batch, expected the end of the stream");
}

void CheckFailure(const std::string& subject, ArrowDeviceArrayStream& stream,
                  const std::string& expected) {
  Taken<ArrowDeviceArray> out;
  const int code = stream.get_next(&stream, &out.value);
  if (code == 0) {
    Differ(subject, std::string(out.IsAlive() ? "is a batch" : "is the end of the stream") +
                        ", expected a failure");
  }
  out.value = {};
  if (code != EIO) {
    Differ(subject, "fails with errno " + std::to_string(code) + ", expected " +
                        std::to_string(EIO) + ": " + LastError(stream));
  }
  const char* text = stream.get_last_error(&stream);
  if (text == nullptr || expected != text) {
    Differ(subject, "fails with the text '" + ForeignText(text) + "', expected '" + expected + "'");
  }
}

}  // namespace

void VerifyArray(Backend& backend, const Case& what, const ArrowSchema& schema,
                 const ArrowDeviceArray& array) {
  const std::string subject = "case " + what.name;
  CheckNode(backend, {subject, ""}, what.node, schema);
  CheckDeviceArray(backend, subject, what.node, array);
}

// The batches are looked at after the stream is released: they have to outlive it.
void VerifyStream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                  ArrowDeviceArrayStream* stream) {
  const std::string subject = "case " + what.name + ": ";
  const auto batch_name = [&](int64_t batch) { return subject + "batch " + std::to_string(batch); };
  Taken<ArrowDeviceArrayStream> taken;
  taken.value = *stream;
  stream->release = nullptr;
  CheckCallbacks(what, backend, taken.value);

  Taken<ArrowSchema> schema;
  Pull(subject + "get_schema", taken.value, taken.value.get_schema, schema);
  std::deque<Taken<ArrowDeviceArray>> pulled;
  const int64_t count = fail_at < 0 ? batches : fail_at;
  for (int64_t i = 0; i < count; ++i) {
    Pull(batch_name(i), taken.value, taken.value.get_next, pulled.emplace_back());
    if (!pulled.back().IsAlive())
      Differ(batch_name(i), "is the end of the stream, expected a batch");
  }
  if (fail_at < 0) {
    CheckEnd(batch_name(count), taken.value);
  } else {
    CheckFailure(batch_name(count), taken.value, FailureText(what, fail_at));
  }
  taken.Release(subject + "stream");

  CheckNode(backend, {subject + "get_schema", ""}, what.node, schema.value);
  schema.Release(subject + "schema");
  for (int64_t i = 0; i < count; ++i) {
    Taken<ArrowDeviceArray>& batch = pulled[static_cast<size_t>(i)];
    CheckDeviceArray(backend, batch_name(i), what.node, batch.value);
    batch.Release(batch_name(i));
  }
}

}  // namespace fletching::producer
