// SPDX-License-Identifier: Apache-2.0
#include "cuda_dictionary.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace fletching::python {
namespace {

enum Key : size_t { kShape, kTypestr, kData, kVersionKey, kStrides, kDescr, kMask, kStream };

// Placeholders for values that no rule reads.
constexpr cai::Interface kAnyMask{};
constexpr int64_t kAnyStream = 1;
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

/// Clears the exception of a foreign method; raises it if it is not an Exception.
void swallow() {
  nb::python_error raised;
  if (!raised.matches(PyExc_Exception) || raised.matches(PyExc_MemoryError)) throw raised;
}

/// Returns text in printable form, without calling a subclass of str.
std::string ascii(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "ascii", "backslashreplace"));
  if (!bytes.is_valid()) throw nb::python_error();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
  return {data, static_cast<size_t>(size)};
}

std::string name_of(nb::handle type) {
  const nb::object name = nb::steal(PyType_GetName(reinterpret_cast<PyTypeObject*>(type.ptr())));
  if (!name.is_valid()) throw nb::python_error();
  return ascii(name);
}

/// Does not call the metaclass.
bool is_numpy_type(nb::handle type) {
  const auto get = reinterpret_cast<getattrofunc>(PyType_GetSlot(&PyType_Type, Py_tp_getattro));
  const nb::str key("__module__");
  const nb::object module = nb::steal(get(type.ptr(), key.ptr()));
  if (!module.is_valid()) return swallow(), false;
  return PyUnicode_Check(module.ptr()) &&
         PyUnicode_CompareWithASCIIString(module.ptr(), "numpy") == 0;
}

/// Returns whether the value is a Python or NumPy bool.
bool is_boolean(nb::handle value) {
  if (PyBool_Check(value.ptr())) return true;
  if (!is_numpy_type(value.type())) return false;
  const std::string name = name_of(value.type());  // bool_ before NumPy 2
  return name == "bool" || name == "bool_";
}

/// Describes a value without calling its methods.
std::string show(nb::handle value) {
  if (value.is_none()) return "None";
  if (value.ptr() == Py_True) return "True";
  if (value.ptr() == Py_False) return "False";
  if (PyLong_Check(value.ptr())) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    return overflow == 0 ? std::to_string(number) : "a number of more than 64 bits";
  }
  if (PyUnicode_Check(value.ptr())) return cai::detail::quote(ascii(value));
  const std::string module = is_numpy_type(value.type()) ? "numpy." : "";
  return "a value of type " + cai::detail::quote(module + name_of(value.type()));
}

/// Formats an integer of any size, without calling a subclass of int.
std::string show_number(nb::handle number) {
  const nb::object digits = nb::steal(PyNumber_ToBase(number.ptr(), 10));
  if (!digits.is_valid()) swallow();  // too many digits
  constexpr size_t kMostDigits = 24;
  std::string text = digits.is_valid() ? ascii(digits) : std::string();
  return text.empty() || text.size() > kMostDigits ? show(number) : text;
}

nb::object item(nb::handle tuple, Py_ssize_t index) {
  return nb::borrow(PyTuple_GetItem(tuple.ptr(), index));
}

class Reader {
 public:
  explicit Reader(CudaDictionary& out) : out_(out) {}

  void read(nb::handle interface) {
    if (!PyDict_Check(interface.ptr())) {
      out_.no_dictionary = show(interface);
      return;
    }
    collect(interface);
    for (size_t i = 0; i < cai::kKeys.size(); ++i) {
      if (!cai::kKeys[i].required || values_[i].is_valid()) continue;
      out_.missing.append(out_.missing.empty() ? "no " : ", ").append(cai::kKeys[i].name);
    }
    value(kVersionKey, [&](nb::handle given) { return integer(given, out_.says.version); });
    value(kShape, [&](nb::handle given) { return integers(given, out_.shape); });
    value(kTypestr, [&](nb::handle given) { return text(given); });
    value(kData, [&](nb::handle given) { return pair(given); });
    value(kStrides, [&](nb::handle given) { return integers(given, out_.strides); });
    value(kDescr, [&](nb::handle given) { return list(given, out_.descr, 0); });
    const int64_t version = cai::detail::Array{out_.says, 0}.judged_as();
    if (version >= cai::kKeys[kStream].since) {
      value(kStream, [&](nb::handle given) { return stream(given); });
    } else if (is_given(kStream)) {
      out_.says.stream = kAnyStream;
    }
    if (version >= cai::kKeys[kMask].since && out_.depth < cai::detail::kMasks) {
      value(kMask, [&](nb::handle given) { return mask(given); });
    } else if (is_given(kMask)) {
      out_.says.mask = &kAnyMask;
    }
    out_.says.shape = out_.shape;
    out_.says.typestr = out_.typestr;
    if (out_.usable[kStrides]) out_.says.strides = out_.strides;
    if (out_.usable[kDescr]) out_.says.descr = out_.descr;
  }

 private:
  using Wrong = std::optional<std::string>;

  /// Collects the entries with known keys. Keys may have any type and are not compared.
  void collect(nb::handle interface) {
    Py_ssize_t position = 0;
    PyObject *key = nullptr, *found = nullptr;
    while (PyDict_Next(interface.ptr(), &position, &key, &found) != 0) {
      if (!PyUnicode_Check(key)) continue;
      for (size_t i = 0; i < cai::kKeys.size(); ++i) {
        const std::string name(cai::kKeys[i].name);
        if (PyUnicode_CompareWithASCIIString(key, name.c_str()) == 0)
          values_[i] = nb::borrow(found);
      }
    }
  }

  bool is_given(Key key) const {
    return values_[key].is_valid() && !(values_[key].is_none() && cai::kKeys[key].none);
  }

  template <class Read>
  void value(Key key, const Read& read) {
    if (!is_given(key)) return;
    out_.wrong[key] = read(values_[key]);
    out_.usable[key] = !out_.wrong[key];
  }

  Wrong text(nb::handle given) {
    if (!PyUnicode_Check(given.ptr())) return show(given);
    out_.typestr = ascii(given);
    return {};
  }

  /// Returns a Python integer, or the __index__ of any other type; rejects booleans.
  nb::object index_of(nb::handle given) {
    if (PyBool_Check(given.ptr())) return {};
    nb::object number = nb::steal(PyNumber_Index(given.ptr()));
    if (!number.is_valid()) swallow();
    return number;
  }

  /// Clamps to 64 bits: no rule applies to larger integers.
  Wrong integer(nb::handle given, int64_t& out) {
    const nb::object number = index_of(given);
    if (!number.is_valid()) return show(given);
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow == 0) return {};
    out_.exceeds_words = true;
    out = overflow > 0 ? kLargest : std::numeric_limits<int64_t>::min();
    return {};
  }

  /// Handles have one bit more than integers.
  Wrong stream(nb::handle given) {
    const nb::object number = index_of(given);
    if (!number.is_valid()) return show(given);
    const unsigned long long handle = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() != nullptr) {
      swallow();
      out_.says.stream = -1;
      out_.no_handle = show_number(number);
      return {};
    }
    constexpr auto kMost = static_cast<unsigned long long>(kLargest);
    out_.exceeds_words |= handle > kMost;
    out_.says.stream = static_cast<int64_t>(std::min(handle, kMost));
    return {};
  }

  Wrong integers(nb::handle given, std::vector<int64_t>& out) {
    if (!PyTuple_Check(given.ptr())) return show(given);
    const Py_ssize_t count = PyTuple_Size(given.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      const nb::object element = item(given, i);
      if (integer(element, out.emplace_back())) return show(element) + " at " + std::to_string(i);
    }
    return {};
  }

  /// Pointers have one bit more than integers.
  Wrong pair(nb::handle given) {
    if (!PyTuple_Check(given.ptr()) || PyTuple_Size(given.ptr()) != 2) return show(given);
    const nb::object first = item(given, 0), second = item(given, 1);
    const nb::object number = index_of(first);
    if (!number.is_valid() || !is_boolean(second)) {
      return "(" + show(first) + ", " + show(second) + ")";
    }
    out_.says.pointer = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred() != nullptr) {
      swallow();
      out_.says.pointer = UINT64_MAX;
      out_.no_address = true;
    }
    const int read_only = PyObject_IsTrue(second.ptr());
    if (read_only < 0) {
      swallow();
      return show(second);
    }
    out_.says.read_only = read_only != 0;
    return out_.no_address ? Wrong(show(number)) : Wrong();
  }

  /// Reads one more level and one more field than the rules allow, so that the excess is reported.
  Wrong list(nb::handle given, std::vector<cai::Field>& out, int depth) {
    if (!PyList_Check(given.ptr())) return show(given);
    const Py_ssize_t count = PyList_Size(given.ptr());
    std::vector<nb::object> elements;
    for (Py_ssize_t i = 0; i < count && elements.size() <= cai::detail::kFields; ++i) {
      elements.push_back(nb::borrow(PyList_GetItem(given.ptr(), i)));
    }
    for (const nb::object& element : elements) {
      if (++fields_ > cai::detail::kFields + 1 || depth > cai::detail::kLists + 1) break;
      if (Wrong wrong = field(element, out.emplace_back(), depth)) return wrong;
    }
    return {};
  }

  Wrong field(nb::handle given, cai::Field& out, int depth) {
    const Py_ssize_t count = PyTuple_Check(given.ptr()) ? PyTuple_Size(given.ptr()) : 0;
    if (count != 2 && count != 3) return "the field " + show(given);
    const nb::object name = item(given, 0), type = item(given, 1);
    if (!is_name(name)) return "a field with the name " + show(name);
    if (count == 3) {
      const nb::object repeats = item(given, 2);
      if (Wrong wrong = integers(repeats, shapes())) {
        return "a field with the shape " + show(repeats);
      }
      out.shape = out_.shapes.back();
    }
    if (PyUnicode_Check(type.ptr())) {
      out.typestr = out_.texts.emplace_back(ascii(type));
      // An empty string would mean that the field has nested fields.
      return out.typestr.empty() ? Wrong("a field of type ''") : Wrong();
    }
    std::vector<cai::Field>& inner = out_.fields.emplace_back();
    Wrong wrong = list(type, inner, depth + 1);
    out.fields = inner.data();
    out.field_count = inner.size();
    return wrong;
  }

  std::vector<int64_t>& shapes() { return out_.shapes.emplace_back(); }

  /// Returns whether `name` is a string, or a pair of strings: a title and a name.
  static bool is_name(nb::handle name) {
    if (PyUnicode_Check(name.ptr())) return true;
    return PyTuple_Check(name.ptr()) && PyTuple_Size(name.ptr()) == 2 &&
           PyUnicode_Check(PyTuple_GetItem(name.ptr(), 0)) &&
           PyUnicode_Check(PyTuple_GetItem(name.ptr(), 1));
  }

  Wrong mask(nb::handle given) {
    const std::string attribute(cai::kAttribute);
    const nb::object interface = nb::steal(PyObject_GetAttrString(given.ptr(), attribute.c_str()));
    if (!interface.is_valid()) {
      swallow();
      return show(given) + " without " + attribute;
    }
    out_.mask = std::make_unique<CudaDictionary>();
    out_.mask->depth = out_.depth + 1;
    Reader(*out_.mask).read(interface);
    out_.says.mask = &out_.mask->says;
    out_.exceeds_words |= out_.mask->exceeds_words;
    return {};
  }

  CudaDictionary& out_;
  std::array<nb::object, cai::kKeys.size()> values_;
  size_t fields_ = 0;
};

// --- Rules ---------------------------------------------------------------------------------------

struct TypeRule {
  std::string_view id, hint;
};

// The rules for the types of values, by key; the other rules are in cai::kRules.
constexpr std::array<TypeRule, cai::kKeys.size()> kTypeRules{{
    {"shape-tuple", "give a tuple of int"},
    {"typestr-string", "give a str"},
    {"data-pair", "give (address, read_only) as a tuple of int and bool"},
    {"version-integer", "give an int"},
    {"strides-tuple", "give None or a tuple of int"},
    {"descr-list", "write it like [('x', '<f4'), ('y', '<f4', (2,))], or leave it out"},
    {"mask-object", "give None or an object with __cuda_array_interface__"},
    {"stream-integer", "give None, 1, 2 or the stream's handle as an int"},
}};

constexpr TypeRule kNoAddress{"data-pointer", "give the address of the first element"};

/// Returns the keys that a check reads. The check is skipped if one of them is missing or wrong.
std::vector<Key> keys_of(cai::Check check) {
  switch (check) {
    case cai::Check::kShapeSizes:
      return {kShape};
    case cai::Check::kTypestrGrammar:
    case cai::Check::kTypestrOrder:
    case cai::Check::kTypestrSize:
      return {kTypestr};
    case cai::Check::kDataPointer:
    case cai::Check::kDataExtent:
      return {kData, kShape, kTypestr};
    case cai::Check::kDataZeroSize:
      return {kData, kShape};
    case cai::Check::kVersionKnown:
      return {kVersionKey};
    case cai::Check::kStridesLength:
      return {kStrides, kShape};
    case cai::Check::kDescrList:
      return {kDescr};
    case cai::Check::kDescrSize:
      return {kDescr, kTypestr};
    case cai::Check::kMaskShape:
      return {kMask, kShape};
    case cai::Check::kStreamZero:
    case cai::Check::kStreamHandle:
      return {kStream};
    case cai::Check::kVersionKeys:
    case cai::Check::kMaskNesting:
      break;
  }
  return {};
}

bool applies(const CudaDictionary& dictionary, cai::Check check) {
  for (const Key key : keys_of(check)) {
    // A pointer that is not an address is not 0 either.
    const bool is_pointer = check == cai::Check::kDataZeroSize && key == kData;
    if (!dictionary.usable[key] && !(is_pointer && dictionary.no_address)) return false;
  }
  if (check == cai::Check::kMaskShape) return dictionary.mask->usable[kShape];
  return check != cai::Check::kDataExtent || !dictionary.wrong[kStrides];
}

constexpr const char* name_of(cai::Severity severity) {
  return severity == cai::Severity::kError ? "error" : "warning";
}

class Checker {
 public:
  std::vector<CudaViolation> run(const CudaDictionary& first) {
    for (const auto* level = &first; level != nullptr; level = level->mask.get()) {
      one(*level);
      path_ += "mask.";
    }
    return std::move(found_);
  }

 private:
  void one(const CudaDictionary& level) {
    if (level.no_dictionary) return whole("dictionary", *level.no_dictionary, "return a dict");
    if (!level.missing.empty()) whole("required-keys", level.missing, "add what is missing");
    for (size_t key = 0; key < cai::kKeys.size(); ++key) of_key(level, key);
  }

  void of_key(const CudaDictionary& level, size_t key) {
    const std::string name(cai::kKeys[key].name);
    if (level.wrong[key]) {
      const TypeRule& rule = key == kData && level.no_address ? kNoAddress : kTypeRules[key];
      add(rule.id, path_ + name, "error", *level.wrong[key], rule.hint);
    }
    const cai::detail::Array array{level.says, level.depth};
    for (const cai::Rule& rule : cai::kRules) {
      if (rule.key != name || rule.since > array.judged_as()) continue;
      if (!applies(level, rule.check)) continue;
      cai::detail::Found found = cai::detail::find(rule.check, array);
      // A size clamped to 64 bits exceeds any memory.
      const bool is_cut = std::ranges::count(level.shape, kLargest) != 0;
      if (rule.check == cai::Check::kDataExtent && is_cut && !level.says.strides &&
          array.has_elements() && array.type && array.type->item_bytes() > 0 &&
          level.says.pointer != 0 && !found) {
        found = "elements outside of the address space";
      }
      if (found && rule.check == cai::Check::kStreamHandle && !level.no_handle.empty()) {
        found = level.no_handle;
      }
      if (found) {
        found_.push_back({std::string(rule.id), path_ + name, name_of(rule.severity),
                          *std::move(found), std::string(rule.hint)});
      }
    }
  }

  void whole(std::string_view id, const std::string& found, std::string_view hint) {
    add(id, path_.substr(0, path_.empty() ? 0 : path_.size() - 1), "error", found, hint);
  }

  void add(std::string_view id, std::string key, std::string_view severity,
           const std::string& found, std::string_view hint) {
    found_.push_back({"cuda-array-interface." + std::string(id), std::move(key),
                      std::string(severity), found, std::string(hint)});
  }

  std::string path_;
  std::vector<CudaViolation> found_;
};

}  // namespace

std::unique_ptr<CudaDictionary> read_cuda_dictionary(nb::handle interface) {
  auto dictionary = std::make_unique<CudaDictionary>();
  Reader(*dictionary).read(interface);
  return dictionary;
}

std::vector<CudaViolation> check_cuda_dictionary(const CudaDictionary& dictionary) {
  return Checker().run(dictionary);
}

}  // namespace fletching::python
