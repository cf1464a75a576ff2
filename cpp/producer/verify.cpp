#include "verify.hpp"

#include <cstring>
#include <deque>
#include <string>

#include "export.hpp"
#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

// The node being compared: {"case struct", "/2/0"}. The root's path is empty.
struct Place {
  std::string subject;
  std::string path;

  Place below(const std::string& name) const { return {subject, path + "/" + name}; }
};

[[noreturn]] void differ(const Place& place, const std::string& what) {
  fail(EBADMSG, place.subject + ": " + (place.path.empty() ? "/" : place.path) + " " + what);
}

[[noreturn]] void differ(const std::string& subject, const std::string& what) {
  fail(EBADMSG, subject + " " + what);
}

void check_number(const Place& place, const std::string& field, int64_t seen, int64_t expected) {
  if (seen == expected) return;
  differ(place, field + " is " + std::to_string(seen) + ", expected " + std::to_string(expected));
}

// Checks a pointer to children or a dictionary. An unexpected one is not dereferenced.
void check_present(const Place& place, const std::string& field, const void* seen, bool expected) {
  if ((seen != nullptr) == expected) return;
  differ(place,
         field + (expected ? " is NULL, expected a pointer" : " is not NULL, expected NULL"));
}

std::string hex_byte(uint8_t byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// NULL and "" are the same name, but NULL is not a valid format.
void check_text(const Place& place, const std::string& field, const char* seen,
                const std::string& expected) {
  if (std::strcmp(seen, expected.c_str()) == 0) return;
  const std::string fault = is_utf8(seen) ? "" : " (not valid UTF-8)";
  differ(place,
         field + " is '" + foreign_text(seen) + "'" + fault + ", expected '" + expected + "'");
}

// --- Metadata

// Compares a foreign metadata block with the expected one and stops at the first difference, so it
// never reads past the end of a correct block.
class MetadataCheck {
 public:
  MetadataCheck(const Place& place, const char* block) : place_(place), next_(block) {}

  void count(size_t expected) { number("the number of pairs", expected); }

  void text(const std::string& what, const std::string& expected) {
    number("the length of " + what, expected.size());
    if (std::memcmp(next_, expected.data(), expected.size()) != 0) {
      differ(place_, "schema.metadata: " + what + " is '" + std::string(next_, expected.size()) +
                         "', expected '" + expected + "'");
    }
    next_ += expected.size();
  }

 private:
  void number(const std::string& what, size_t expected) {
    int32_t seen = 0;
    std::memcpy(&seen, next_, sizeof(seen));
    next_ += sizeof(seen);
    if (seen < 0)
      differ(place_, "schema.metadata: " + what + " is negative: " + std::to_string(seen));
    check_number(place_, "schema.metadata: " + what, seen, static_cast<int64_t>(expected));
  }

  const Place& place_;
  const char* next_;
};

void check_metadata(const Place& place, const char* block, const Node& node) {
  check_present(place, "schema.metadata", block, !node.metadata.empty());
  if (block == nullptr) return;
  MetadataCheck check(place, block);
  check.count(node.metadata.size());
  for (size_t i = 0; i < node.metadata.size(); ++i) {
    check.text("key " + std::to_string(i), node.metadata[i].first);
    check.text("value " + std::to_string(i), node.metadata[i].second);
  }
}

// --- Trees

void check_node(Backend& backend, const Place& place, const Node& node, const ArrowArray& array);
void check_node(Backend& backend, const Place& place, const Node& node, const ArrowSchema& schema);

// Checks the children and the dictionary of a schema or array. `kind`: "schema".
template <class Struct>
void check_below(Backend& backend, const Place& place, const std::string& kind, const Node& node,
                 const Struct& above) {
  const size_t count = node.children.size();
  check_number(place, kind + ".n_children", above.n_children, static_cast<int64_t>(count));
  if (count > 0) check_present(place, kind + ".children", above.children, true);
  for (size_t i = 0; i < count; ++i) {
    const std::string index = std::to_string(i);
    std::string child = kind;
    child.append(".children[").append(index).append("]");
    check_present(place, child, above.children[i], true);
    check_node(backend, place.below(index), node.children[i], *above.children[i]);
  }
  check_present(place, kind + ".dictionary", above.dictionary, node.dictionary != nullptr);
  if (node.dictionary) check_node(backend, place.below("d"), *node.dictionary, *above.dictionary);
}

void check_node(Backend& backend, const Place& place, const Node& node, const ArrowSchema& schema) {
  if (schema.release == nullptr) differ(place, "schema is released");
  check_present(place, "schema.format", schema.format, true);
  check_text(place, "schema.format", schema.format, node.format);
  check_text(place, "schema.name", schema.name == nullptr ? "" : schema.name, node.name);
  check_metadata(place, schema.metadata, node);
  check_number(place, "schema.flags", schema.flags, node.flags);
  check_below(backend, place, "schema", node, schema);
}

void check_buffer(Backend& backend, const Place& place, const std::string& name, const void* buffer,
                  const std::optional<Bytes>& expected) {
  check_present(place, name, buffer, expected.has_value());
  if (!expected) return;
  // Checked before the bytes: foreign memory may be shorter.
  const void* origin = origin_of(buffer);
  if (origin == nullptr) differ(place, name + " is not the memory that was exported");
  if (origin != &*expected) differ(place, name + " is the memory of another exported buffer");
  if (expected->empty()) return;
  Bytes seen(expected->size());
  backend.copy_from(seen.data(), buffer, seen.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == (*expected)[i]) continue;
    differ(place, name + ": byte " + std::to_string(i) + " is " + hex_byte(seen[i]) +
                      ", expected " + hex_byte((*expected)[i]));
  }
}

void check_node(Backend& backend, const Place& place, const Node& node, const ArrowArray& array) {
  if (array.release == nullptr) differ(place, "array is released");
  check_number(place, "array.length", array.length, node.length);
  check_number(place, "array.null_count", array.null_count, node.null_count);
  check_number(place, "array.offset", array.offset, node.offset);
  check_number(place, "array.n_buffers", array.n_buffers,
               static_cast<int64_t>(node.buffers.size()));
  if (!node.buffers.empty()) check_present(place, "array.buffers", array.buffers, true);
  for (size_t i = 0; i < node.buffers.size(); ++i) {
    Backend& home = is_in_host_memory(node, i) ? *cpu_backend() : backend;
    check_buffer(home, place, "buffer " + std::to_string(i), array.buffers[i], node.buffers[i]);
  }
  check_below(backend, place, "array", node, array);
}

// Also waits for the event, because the buffers are read next.
void check_event(const Backend& backend, const Place& root, const void* sync_event) {
  check_present(root, "sync_event", sync_event, backend.has_queues());
  if (sync_event == nullptr) return;
  Event* event = find_event(sync_event);
  if (event == nullptr) differ(root, "sync_event is not the event that was exported");
  event->wait();
}

void check_device_array(Backend& backend, const std::string& subject, const Node& node,
                        const ArrowDeviceArray& array) {
  const Place root{subject, ""};
  if (array.array.release == nullptr) differ(root, "array is released");
  check_number(root, "device_type", array.device_type, backend.device_type());
  check_number(root, "device_id", array.device_id, backend.device_id());
  check_event(backend, root, array.sync_event);
  for (size_t i = 0; i < 3; ++i) {
    check_number(root, "reserved[" + std::to_string(i) + "]", array.reserved[i], 0);
  }
  check_node(backend, root, node, array.array);
}

// --- Streams

// A foreign struct, released once.
template <class Struct>
struct Taken {
  Struct value{};

  Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    if (is_alive()) base().release(&base());
  }

  auto& base() {
    if constexpr (requires { value.array; }) {
      return value.array;
    } else {
      return value;
    }
  }
  bool is_alive() { return base().release != nullptr; }

  void release(const std::string& subject) {
    if (!is_alive()) return;
    base().release(&base());
    if (!is_alive()) return;
    base().release = nullptr;  // even if the callback does not do it
    differ(subject, "release did not set release to NULL");
  }
};

std::string last_error(ArrowDeviceArrayStream& stream) {
  if (stream.get_last_error == nullptr) return "(get_last_error is NULL)";
  return foreign_text(stream.get_last_error(&stream));
}

// Makes a call that must succeed. If it fails, `out` is not released.
template <class Struct>
void pull(const std::string& subject, ArrowDeviceArrayStream& stream,
          int (*callback)(ArrowDeviceArrayStream*, Struct*), Taken<Struct>& out) {
  const int code = callback(&stream, &out.value);
  if (code == 0) return;
  out.value = {};
  differ(subject, "fails with errno " + std::to_string(code) + ": " + last_error(stream));
}

void check_callbacks(const Case& what, const Backend& backend,
                     const ArrowDeviceArrayStream& stream) {
  const std::string subject = "case " + what.name + ": stream";
  const auto check = [&](const std::string& name, bool present) {
    if (!present) differ(subject, name + " is NULL");
  };
  if (stream.release == nullptr) differ(subject, "is released");
  check("get_schema", stream.get_schema != nullptr);
  check("get_next", stream.get_next != nullptr);
  check("get_last_error", stream.get_last_error != nullptr);
  if (stream.device_type == backend.device_type()) return;
  differ(subject, "device_type is " + std::to_string(stream.device_type) + ", expected " +
                      std::to_string(backend.device_type()));
}

void check_end(const std::string& subject, ArrowDeviceArrayStream& stream) {
  Taken<ArrowDeviceArray> out;
  pull(subject, stream, stream.get_next, out);
  if (out.is_alive()) differ(subject, "is a batch, expected the end of the stream");
}

void check_failure(const std::string& subject, ArrowDeviceArrayStream& stream,
                   const std::string& expected) {
  Taken<ArrowDeviceArray> out;
  const int code = stream.get_next(&stream, &out.value);
  if (code == 0) {
    differ(subject, std::string(out.is_alive() ? "is a batch" : "is the end of the stream") +
                        ", expected a failure");
  }
  out.value = {};
  if (code != EIO) {
    differ(subject, "fails with errno " + std::to_string(code) + ", expected " +
                        std::to_string(EIO) + ": " + last_error(stream));
  }
  const char* text = stream.get_last_error(&stream);
  if (text == nullptr || expected != text) {
    differ(subject,
           "fails with the text '" + foreign_text(text) + "', expected '" + expected + "'");
  }
}

}  // namespace

void verify_array(Backend& backend, const Case& what, const ArrowSchema& schema,
                  const ArrowDeviceArray& array) {
  const std::string subject = "case " + what.name;
  check_node(backend, {subject, ""}, what.node, schema);
  check_device_array(backend, subject, what.node, array);
}

// The batches are checked after the stream is released, because they must outlive it.
void verify_stream(Backend& backend, const Case& what, int64_t batches, int64_t fail_at,
                   ArrowDeviceArrayStream* stream) {
  const std::string subject = "case " + what.name + ": ";
  const auto batch_name = [&](int64_t batch) { return subject + "batch " + std::to_string(batch); };
  Taken<ArrowDeviceArrayStream> taken;
  taken.value = *stream;
  stream->release = nullptr;
  check_callbacks(what, backend, taken.value);

  Taken<ArrowSchema> schema;
  pull(subject + "get_schema", taken.value, taken.value.get_schema, schema);
  std::deque<Taken<ArrowDeviceArray>> pulled;
  const int64_t count = fail_at < 0 ? batches : fail_at;
  for (int64_t i = 0; i < count; ++i) {
    pull(batch_name(i), taken.value, taken.value.get_next, pulled.emplace_back());
    if (!pulled.back().is_alive())
      differ(batch_name(i), "is the end of the stream, expected a batch");
  }
  if (fail_at < 0) {
    check_end(batch_name(count), taken.value);
  } else {
    check_failure(batch_name(count), taken.value, failure_text(what, fail_at));
  }
  taken.release(subject + "stream");

  check_node(backend, {subject + "get_schema", ""}, what.node, schema.value);
  schema.release(subject + "schema");
  for (int64_t i = 0; i < count; ++i) {
    Taken<ArrowDeviceArray>& batch = pulled[static_cast<size_t>(i)];
    check_device_array(backend, batch_name(i), what.node, batch.value);
    batch.release(batch_name(i));
  }
}

}  // namespace fletching::producer
