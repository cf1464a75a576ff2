// Builds the cases in memory and records their releases.
#include "corpus.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <istream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "case_file.hpp"

namespace {

using nlohmann::json;

/// A wrong struct from the code under test. The message names the field.
struct Difference : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int answer(FletchingMessage* message, int code, const std::string& text) noexcept {
  if (message != nullptr) {
    std::strncpy(message->text, text.c_str(), sizeof message->text - 1);
    message->text[sizeof message->text - 1] = '\0';
  }
  return code;
}

/// Runs `body` and converts its exceptions to errno values, because C cannot catch them.
template <class Body>
int guarded(FletchingMessage* message, Body body) noexcept {
  try {
    body();
    return answer(message, 0, "");
  } catch (const Difference& difference) {
    return answer(message, EBADMSG, difference.what());
  } catch (const std::bad_alloc&) {
    return answer(message, ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return answer(message, EINVAL, error.what());
  }
}

// --- The cases ---

struct Case {
  json data;
  std::string name;
  std::map<std::string, std::string> texts;
  int32_t kind = 0;
};

int32_t kind_of(const json& data) {
  if (data.contains("stream")) return kFletchingCorpusStream;
  if (data.contains("array")) return kFletchingCorpusArray;
  if (!data.contains("tensor")) return kFletchingCorpusSchema;
  return data["tensor"].at("version").is_null() ? kFletchingCorpusLegacyTensor
                                                : kFletchingCorpusTensor;
}

void read_cases(std::istream& file, std::vector<Case>& cases) {
  json read_file = json::parse(file);
  for (json& data : read_file.at("cases")) {
    if (data.value("pointer_bits", size_t{0}) > sizeof(void*) * CHAR_BIT) {
      std::fprintf(stderr, "corpus: skipped: %s needs pointers of %zu bits\n",
                   data.at("name").get<std::string>().c_str(), data["pointer_bits"].get<size_t>());
      continue;
    }
    Case read;
    read.name = data.at("name");
    read.kind = kind_of(data);
    for (const auto& [key, value] : data.items()) {
      read.texts[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    read.data = std::move(data);
    cases.push_back(std::move(read));
  }
}

/// Ends the process if a file cannot be read: without cases every test would pass.
std::vector<Case> read_files() {
  std::vector<Case> cases;
  for (const char* path : {FLETCHING_CORPUS_CASES}) {
    try {
      std::ifstream file(fletching::case_file(path));
      if (!file) throw std::runtime_error("not found");
      read_cases(file, cases);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "corpus: %s: %s; hint: build it again, its path is compiled in\n", path,
                   error.what());
      std::_Exit(2);
    }
  }
  return cases;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> read = read_files();
  return read;
}

const Case* case_at(int32_t index) noexcept {
  return index < 0 || static_cast<size_t>(index) >= cases().size() ? nullptr : &cases()[index];
}

const json& case_named(const char* name) {
  for (const Case& each : cases()) {
    if (name != nullptr && each.name == name) return each.data;
  }
  throw std::invalid_argument(std::string("no case ") + (name == nullptr ? "NULL" : name));
}

// --- Memory and the record of live structs ---

/// The memory of one export's structs. Freed after the last of them is released.
struct Memory {
  std::deque<std::string> texts;
  std::deque<std::unique_ptr<void, decltype(&std::free)>> blocks;
  std::deque<ArrowSchema> schemas;
  std::deque<ArrowArray> arrays;
  std::deque<std::vector<const void*>> buffers;
  std::deque<std::vector<ArrowSchema*>> schema_lists;
  std::deque<std::vector<ArrowArray*>> array_lists;
  std::deque<std::pair<const void*, std::string>> originals;  // copies of strings and buffers
  size_t skew = 0;                                            // address offset of copies

  const char* text(std::string text) {
    texts.push_back(std::move(text));
    originals.emplace_back(texts.back().c_str(), texts.back());
    return texts.back().c_str();
  }

  [[nodiscard]] bool is_unchanged() const {
    return std::ranges::all_of(originals, [](const auto& original) {
      const auto& [block, bytes] = original;
      return std::memcmp(block, bytes.data(), bytes.size()) == 0;
    });
  }

  /// Zeros, aligned to 64 bytes, that end with their allocation. Large ones only reserve addresses.
  char* zeros(size_t size) {
    void* block = nullptr;
    if (size > (1U << 20)) {
      block = std::calloc(1, size);
    } else if (posix_memalign(&block, 64, size) == 0) {
      std::memset(block, 0, size);
    }
    if (block == nullptr) throw std::bad_alloc();
    blocks.emplace_back(block, &std::free);
    return static_cast<char*>(block);
  }

  const void* copy(const void* bytes, size_t size) {
    char* block = zeros(size + skew) + skew;
    if (size == 0) return block;
    std::memcpy(block, bytes, size);
    originals.emplace_back(block, std::string(block, size));
    return block;
  }
};

/// An exported, unreleased struct. Its id is in private_data and is never reused, so that a second
/// release is detected.
struct Live {
  const char* what = "";
  // The initializers prevent gcc's warning about members that an aggregate omits.
  // NOLINTBEGIN(readability-redundant-member-init)
  std::shared_ptr<Memory> memory = nullptr;
  std::vector<ArrowSchema*> schemas = {};
  std::vector<ArrowArray*> arrays = {};
  // NOLINTEND(readability-redundant-member-init)
  /// The struct as exported.
  ArrowSchema schema_given = {};
  ArrowArray array_given = {};
  bool forgets = false;
  /// Streams only:
  const json* calls = nullptr;
  const json* schema = nullptr;
  size_t next = 0;
  bool failed = false;
};

struct Account {
  std::mutex mutex;
  std::unordered_map<uintptr_t, Live> live;
  uintptr_t last_id = 0;
  std::string mistake;
  /// Arrays that a failed call left in `out`, kept until Finish.
  std::vector<std::shared_ptr<Memory>> abandoned;
  /// The buffers of the last export by the path of their array.
  std::map<std::string, std::vector<const void*>> buffers;

  void* open(Live live_struct) {
    live.emplace(++last_id, std::move(live_struct));
    return reinterpret_cast<void*>(last_id);
  }

  void note(const std::string& text) {
    if (mistake.empty()) mistake = text;
  }
};

Account& account() {
  static Account one;
  return one;
}

Live close(void* id, const char* callback) {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  const auto found = all.live.find(reinterpret_cast<uintptr_t>(id));
  if (found == all.live.end()) {
    all.note(std::string(callback) + ": called twice, or on a struct that was changed");
    return {};
  }
  Live closed = std::move(found->second);
  all.live.erase(found);
  return closed;
}

template <class Raw>
void release_all(const std::vector<Raw*>& below) {
  for (Raw* each : below) {
    if (each->release != nullptr) each->release(each);
  }
}

/// Reports any change by the consumer, except to `release`, in the struct, a string or a buffer.
/// Overwrites the released struct, so that a later read is detected.
template <class Raw>
void end(Raw* raw, Raw given, const Memory& memory, bool forgets) {
  const auto release = raw->release;
  given.release = release;
  if (std::memcmp(raw, &given, sizeof given) != 0) {
    const std::lock_guard lock(account().mutex);
    account().note("a struct was changed by the consumer");
  }
  if (!memory.is_unchanged()) {
    const std::lock_guard lock(account().mutex);
    account().note("what a struct points to was changed by the consumer");
  }
  std::memset(static_cast<void*>(raw), 0xA5, sizeof *raw);
  raw->private_data = given.private_data;
  raw->release = forgets ? release : nullptr;
}

void release_schema(ArrowSchema* schema) {
  const Live closed = close(schema->private_data, "ArrowSchema.release");
  release_all(closed.schemas);
  if (closed.memory != nullptr) end(schema, closed.schema_given, *closed.memory, closed.forgets);
}

void release_array(ArrowArray* array) {
  const Live closed = close(array->private_data, "ArrowArray.release");
  release_all(closed.arrays);
  if (closed.memory != nullptr) end(array, closed.array_given, *closed.memory, closed.forgets);
}

void release_stream(ArrowArrayStream* stream) {
  const Live closed = close(stream->private_data, "ArrowArrayStream.release");
  if (!closed.forgets) stream->release = nullptr;
}

void release_abandoned(ArrowArray* array) {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  all.note("ArrowArray.release: called on what a failed get_next has left behind");
  array->release = nullptr;
}

/// Completes the export of a struct.
template <class Raw>
void open(Live live, Raw Live::* given, Raw* out) {
  out->private_data = account().open(std::move(live));
  Live& opened = account().live[reinterpret_cast<uintptr_t>(out->private_data)];
  opened.*given = *out;
}

// --- Schemas ---

std::string unhex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void append_text(std::string& block, const std::string& text) {
  const auto size = static_cast<int32_t>(text.size());
  block.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

std::string encode_metadata(const json& pairs) {
  const auto count = static_cast<int32_t>(pairs.size());
  std::string block(reinterpret_cast<const char*>(&count), sizeof count);
  for (const json& pair : pairs) {
    append_text(block, unhex(pair.at(0)));
    append_text(block, unhex(pair.at(1)));
  }
  return block;
}

/// Builds the children. Returns NULL for null or a missing list.
template <class Raw, class Build>
Raw** build_list(const json& data, std::deque<Raw>& structs, std::deque<std::vector<Raw*>>& lists,
                 std::vector<Raw*>& below, Build build) {
  if (!data.contains("children") || data["children"].is_null()) return nullptr;
  std::vector<Raw*>& list = lists.emplace_back();
  for (const json& each : data["children"]) {
    Raw& child = structs.emplace_back();
    list.push_back(&child);
    build(each, &child, list.size() - 1);
    below.push_back(&child);
  }
  return list.data();
}

int64_t count_of(const json& data, const char* count, const char* list) {
  if (data.contains(count)) return data[count];
  return data.contains(list) ? static_cast<int64_t>(data[list].size()) : 0;
}

void build_schema(const json& data, ArrowSchema* out, const std::shared_ptr<Memory>& memory) {
  Live live{"ArrowSchema", memory};
  *out = {};
  out->format = memory->text(data.at("format"));
  out->name = memory->text(data.value("name", ""));
  if (data.contains("metadata")) out->metadata = memory->text(encode_metadata(data["metadata"]));
  out->flags = data.value("flags", ARROW_FLAG_NULLABLE);
  out->n_children = count_of(data, "n_children", "children");
  out->children = build_list(
      data, memory->schemas, memory->schema_lists, live.schemas,
      [&](const json& child, ArrowSchema* raw, size_t) { build_schema(child, raw, memory); });
  if (data.contains("dictionary")) {
    out->dictionary = &memory->schemas.emplace_back();
    build_schema(data["dictionary"], out->dictionary, memory);
    live.schemas.push_back(out->dictionary);
  }
  out->release = &release_schema;
  open(std::move(live), &Live::schema_given, out);
}

// --- Arrays ---

template <class Value>
const void* copy_values(const json& values, Memory& memory) {
  const std::vector<Value> list = values;
  return memory.copy(list.data(), list.size() * sizeof(Value));
}

/// 64-bit numbers as 128-bit numbers in native byte order.
const void* copy_wide_values(const json& values, Memory& memory) {
  std::vector<int64_t> words;
  for (const int64_t value : values) {
    const int64_t sign = value < 0 ? -1 : 0;
    const bool little = std::endian::native == std::endian::little;
    words.insert(words.end(), {little ? value : sign, little ? sign : value});
  }
  return memory.copy(words.data(), words.size() * sizeof(int64_t));
}

/// 16-byte views: the length, and either 12 bytes or a prefix, a buffer index and an offset.
const void* copy_views(const json& values, Memory& memory) {
  std::string views;
  const auto append = [&](const json& number) {
    const int32_t value = number;
    views.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const json& view : values) {
    append(view.at("length"));
    views.append(unhex(view.at("hex")));
    if (!view.contains("index")) continue;
    append(view["index"]);
    append(view.at("offset"));
  }
  return memory.copy(views.data(), views.size());
}

const void* build_buffer(const json& data, Memory& memory) {
  if (data.is_null()) return nullptr;
  const std::string& key = data.begin().key();
  const json& value = data.begin().value();
  if (key == "address") return reinterpret_cast<const void*>(value.get<uintptr_t>());
  if (key == "zeros") return memory.zeros(value);
  if (key == "odd") {
    memory.skew = 1;
    const void* buffer = build_buffer(value, memory);
    memory.skew = 0;
    return buffer;
  }
  if (key == "i8") return copy_values<int8_t>(value, memory);
  if (key == "i16") return copy_values<int16_t>(value, memory);
  if (key == "i32") return copy_values<int32_t>(value, memory);
  if (key == "i64") return copy_values<int64_t>(value, memory);
  if (key == "i128") return copy_wide_values(value, memory);
  if (key == "views") return copy_views(value, memory);
  if (key != "text" && key != "hex") throw std::invalid_argument("no kind of buffer " + key);
  const std::string bytes = key == "text" ? value.get<std::string>() : unhex(value);
  return memory.copy(bytes.data(), bytes.size());
}

void build_array(const json& data, ArrowArray* out, const std::shared_ptr<Memory>& memory,
                 const std::string& path = "array") {
  Live live{"ArrowArray", memory};
  *out = {};
  out->length = data.at("length");
  out->offset = data.value("offset", int64_t{0});
  out->null_count = data.value("null_count", int64_t{0});
  out->n_buffers = count_of(data, "n_buffers", "buffers");
  if (!data.at("buffers").is_null()) {
    std::vector<const void*>& buffers = memory->buffers.emplace_back();
    for (const json& buffer : data["buffers"]) buffers.push_back(build_buffer(buffer, *memory));
    out->buffers = buffers.data();
    account().buffers[path] = buffers;
  }
  out->n_children = count_of(data, "n_children", "children");
  out->children = build_list(data, memory->arrays, memory->array_lists, live.arrays,
                             [&](const json& child, ArrowArray* raw, size_t index) {
                               build_array(child, raw, memory,
                                           path + ".children[" + std::to_string(index) + "]");
                             });
  if (data.contains("dictionary")) {
    out->dictionary = &memory->arrays.emplace_back();
    build_array(data["dictionary"], out->dictionary, memory, path + ".dictionary");
    live.arrays.push_back(out->dictionary);
  }
  live.forgets = data.value("release_forgets", false);
  out->release = &release_array;
  open(std::move(live), &Live::array_given, out);
}

// --- Streams ---

/// The stream's state. NULL and a recorded mistake after its release.
Live* stream_of(ArrowArrayStream* stream, const char* callback) {
  const auto found = account().live.find(reinterpret_cast<uintptr_t>(stream->private_data));
  if (found != account().live.end()) return &found->second;
  account().note(std::string(callback) + ": called after release");
  return nullptr;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  const std::lock_guard lock(account().mutex);
  Live* state = stream_of(stream, "get_schema");
  if (state == nullptr) return EINVAL;
  return guarded(nullptr, [&] { build_schema(*state->schema, out, std::make_shared<Memory>()); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  const std::lock_guard lock(account().mutex);
  Live* state = stream_of(stream, "get_next");
  if (state == nullptr) return EINVAL;
  if (state->failed) account().note("get_next: called after it has failed");
  if (state->next == state->calls->size()) {
    *out = {};
    return 0;
  }
  const json& call = (*state->calls)[state->next++];
  const int error = call.value("error", 0);
  state->failed = error != 0;
  if (!call.contains("array")) return error;
  const auto memory = std::make_shared<Memory>();
  const int built = guarded(nullptr, [&] { build_array(call["array"], out, memory); });
  if (built != 0 || error == 0) return built;
  account().live.erase(reinterpret_cast<uintptr_t>(out->private_data));
  account().abandoned.push_back(memory);
  out->release = &release_abandoned;
  return error;
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::lock_guard lock(account().mutex);
  const Live* state = stream_of(stream, "get_last_error");
  if (state != nullptr && !state->failed) account().note("get_last_error: called without an error");
  return "the case says so";
}

// --- Tensors ---

/// A tensor and its memory. The deleter gets its address and its id.
template <class Managed>
struct OwnedTensor {
  Managed managed = {};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  Memory memory;
};

template <class Managed>
void delete_tensor(Managed* managed) {
  close(managed->manager_ctx, "deleter");
  delete reinterpret_cast<OwnedTensor<Managed>*>(managed);
}

template <class Managed>
Managed* build_tensor(const json& data) {
  auto owned = std::make_unique<OwnedTensor<Managed>>();
  owned->shape = data.at("shape").get<std::vector<int64_t>>();
  DLTensor& tensor = owned->managed.dl_tensor;
  tensor.data = const_cast<void*>(build_buffer(data.at("data"), owned->memory));
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(owned->shape.size());
  const json& type = data.at("type");
  tensor.dtype = {type.at(0), type.at(1), type.at(2)};
  if (!owned->shape.empty()) tensor.shape = owned->shape.data();
  if (!data.at("strides").is_null()) {
    owned->strides = data["strides"].get<std::vector<int64_t>>();
    tensor.strides = owned->strides.data();
  }
  tensor.byte_offset = data.value("byte_offset", uint64_t{0});
  owned->managed.deleter = &delete_tensor<Managed>;
  owned->managed.manager_ctx = account().open(Live{"tensor"});
  return &owned.release()->managed;
}

// --- Comparison ---

template <class Value>
void expect(const std::string& path, const char* field, const Value& wanted, const Value& got) {
  if (wanted == got) return;
  const auto text = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  throw Difference(path + "." + field + ": expected " + text(wanted) + ", got " + text(got));
}

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

/// Calls `compare` for each child and the dictionary.
template <class Raw, class Compare>
void compare_below(const json& data, const Raw& raw, const std::string& path, Compare compare) {
  if (data.contains("children") && !data["children"].is_null()) {
    const bool has_children = !data["children"].empty();
    if (has_children) expect(path, "children", true, raw.children != nullptr);
    for (size_t i = 0; i < data["children"].size(); ++i) {
      const std::string child = path + ".children[" + std::to_string(i) + "]";
      expect(child, "pointer", true, raw.children[i] != nullptr);
      compare(data["children"][i], *raw.children[i], child);
    }
  }
  expect(path, "dictionary", data.contains("dictionary"), raw.dictionary != nullptr);
  if (raw.dictionary != nullptr) {
    compare(data["dictionary"], *raw.dictionary, path + ".dictionary");
  }
}

void compare_schema(const json& data, const ArrowSchema& schema, const std::string& path) {
  expect(path, "release", true, schema.release != nullptr);
  expect(path, "format", data.at("format").get<std::string>(), text_of(schema.format));
  expect(path, "name", std::string(data.value("name", "")), text_of(schema.name));
  expect(path, "flags", data.value("flags", int64_t{ARROW_FLAG_NULLABLE}), schema.flags);
  expect(path, "n_children", count_of(data, "n_children", "children"), schema.n_children);
  expect(path, "metadata", data.contains("metadata"), schema.metadata != nullptr);
  if (data.contains("metadata")) {
    const std::string wanted = encode_metadata(data["metadata"]);
    expect(path, "metadata's bytes", true,
           std::memcmp(wanted.data(), schema.metadata, wanted.size()) == 0);
  }
  compare_below(data, schema, path, compare_schema);
}

void compare_array(const json& data, const ArrowArray& array, const std::string& path) {
  expect(path, "release", true, array.release != nullptr);
  expect(path, "length", data.at("length").get<int64_t>(), array.length);
  expect(path, "offset", data.value("offset", int64_t{0}), array.offset);
  expect(path, "null_count", data.value("null_count", int64_t{0}), array.null_count);
  expect(path, "n_buffers", count_of(data, "n_buffers", "buffers"), array.n_buffers);
  expect(path, "n_children", count_of(data, "n_children", "children"), array.n_children);
  if (!data.at("buffers").is_null()) {
    const std::vector<const void*>& buffers = account().buffers[path];
    if (!buffers.empty()) expect(path, "buffers", true, array.buffers != nullptr);
    for (size_t i = 0; i < buffers.size(); ++i) {
      expect(path, "buffers", reinterpret_cast<uintptr_t>(buffers[i]),
             reinterpret_cast<uintptr_t>(array.buffers[i]));
    }
  }
  compare_below(data, array, path, compare_array);
}

const json& part(const char* name, const char* key) {
  const json& data = case_named(name);
  if (!data.contains(key)) throw std::invalid_argument(std::string(name) + " has no " + key);
  return data[key];
}

template <class Raw>
void require(const Raw* argument) {
  if (argument == nullptr) throw std::invalid_argument("the struct is NULL");
}

}  // namespace

int32_t FletchingCorpusCount(void) { return static_cast<int32_t>(cases().size()); }

const char* FletchingCorpusName(int32_t index) {
  const Case* found = case_at(index);
  return found == nullptr ? nullptr : found->name.c_str();
}

int32_t FletchingCorpusKind(int32_t index) {
  const Case* found = case_at(index);
  return found == nullptr ? 0 : found->kind;
}

int32_t FletchingCorpusVerdict(int32_t index) {
  const Case* found = case_at(index);
  if (found == nullptr) return 0;
  return found->texts.at("verdict") == "accept" ? kFletchingCorpusAccept : kFletchingCorpusRefuse;
}

const char* FletchingCorpusText(int32_t index, const char* key) {
  const Case* found = case_at(index);
  if (found == nullptr || key == nullptr || !found->texts.contains(key)) return nullptr;
  return found->texts.at(key).c_str();
}

const char* FletchingCorpusException(int32_t index, const char* library) {
  const Case* found = case_at(index);
  if (found == nullptr || library == nullptr || !found->data.contains("exceptions")) return nullptr;
  const json& exceptions = found->data["exceptions"];
  if (!exceptions.contains(library)) return nullptr;
  return exceptions[library].get_ref<const std::string&>().c_str();
}

int32_t FletchingCorpusBatches(int32_t index) {
  const Case* found = case_at(index);
  return found == nullptr ? 0 : found->data.value("batches", 0);
}

int32_t FletchingCorpusError(int32_t index) {
  const Case* found = case_at(index);
  return found == nullptr ? 0 : found->data.value("error", 0);
}

int FletchingCorpusExportSchema(const char* name, ArrowSchema* out, FletchingMessage* message) {
  return guarded(message, [&] {
    require(out);
    const json& data = part(name, "schema");
    const std::lock_guard lock(account().mutex);
    build_schema(data, out, std::make_shared<Memory>());
  });
}

int FletchingCorpusExportArray(const char* name, ArrowDeviceArray* out, FletchingMessage* message) {
  return guarded(message, [&] {
    require(out);
    const json& data = part(name, "array");
    const std::lock_guard lock(account().mutex);
    *out = {};
    out->device_type = ARROW_DEVICE_CPU;
    out->device_id = -1;
    account().buffers.clear();
    build_array(data, &out->array, std::make_shared<Memory>());
  });
}

int FletchingCorpusExportStream(const char* name, ArrowArrayStream* out,
                                FletchingMessage* message) {
  return guarded(message, [&] {
    require(out);
    Live live{"ArrowArrayStream", nullptr};
    live.calls = &part(name, "stream");
    live.schema = &part(name, "schema");
    live.forgets = case_named(name).value("release_forgets", false);
    const std::lock_guard lock(account().mutex);
    *out = {&get_schema, &get_next, &get_last_error, &release_stream,
            account().open(std::move(live))};
  });
}

int FletchingCorpusExportTensor(const char* name, DLManagedTensorVersioned** out,
                                FletchingMessage* message) {
  return guarded(message, [&] {
    require(out);
    const json& data = part(name, "tensor");
    const std::lock_guard lock(account().mutex);
    auto* managed = build_tensor<DLManagedTensorVersioned>(data);
    managed->version = {data.at("version").at(0), data["version"].at(1)};
    *out = managed;
  });
}

int FletchingCorpusExportLegacyTensor(const char* name, DLManagedTensor** out,
                                      FletchingMessage* message) {
  return guarded(message, [&] {
    require(out);
    const json& data = part(name, "tensor");
    const std::lock_guard lock(account().mutex);
    *out = build_tensor<DLManagedTensor>(data);
  });
}

int FletchingCorpusCompareSchema(const char* name, const ArrowSchema* schema,
                                 FletchingMessage* message) {
  return guarded(message, [&] {
    require(schema);
    compare_schema(part(name, "schema"), *schema, "schema");
  });
}

int FletchingCorpusCompareArray(const char* name, const ArrowDeviceArray* array,
                                FletchingMessage* message) {
  return guarded(message, [&] {
    require(array);
    const json& data = part(name, "array");
    const std::lock_guard lock(account().mutex);
    expect("array", "device_type", int32_t{ARROW_DEVICE_CPU}, array->device_type);
    expect("array", "device_id", int64_t{-1}, array->device_id);
    compare_array(data, array->array, "array");
  });
}

int FletchingCorpusFinish(FletchingMessage* message) {
  Account& all = account();
  const std::lock_guard lock(all.mutex);
  std::string wrong = all.mistake;
  if (wrong.empty() && !all.live.empty()) {
    wrong = std::to_string(all.live.size()) + " structs were not released, first a " +
            all.live.begin()->second.what;
  }
  all.live.clear();
  all.mistake.clear();
  all.abandoned.clear();
  all.buffers.clear();
  return wrong.empty() ? answer(message, 0, "") : answer(message, EBADMSG, wrong);
}
