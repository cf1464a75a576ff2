// SPDX-License-Identifier: Apache-2.0
//
// Extension types of a schema: the two metadata keys and the JSON parameters (C Data Interface,
// "Extension types"; "Canonical Extension Types").
#ifndef FLETCHING_CORE_TENSOR_EXTENSION_H
#define FLETCHING_CORE_TENSOR_EXTENSION_H

#include "tensor_types.h"

#define EXTENSION_NAME "ARROW:extension:name"
#define EXTENSION_METADATA "ARROW:extension:metadata"

static const char BOOL8[] = "arrow.bool8";
static const char OPAQUE_TYPE[] = "arrow.opaque";  // wingdi.h defines OPAQUE
static const char FIXED_SHAPE_TENSOR[] = "arrow.fixed_shape_tensor";

// Part of a string, not necessarily NUL-terminated.
struct piece {
  const char* text;
  size_t size;
};

static bool is_text(struct piece piece, const char* text) {
  return piece.size == strlen(text) && memcmp(piece.text, text, piece.size) == 0;
}

// Extension type of a field. The name is empty if there is no extension.
struct extension {
  struct piece name;
  struct piece parameters;
};

// --- Metadata ---

// Reads an int32 of the metadata, which is not aligned.
static bool take_length(const char** at, int32_t* number, const char* what,
                        struct failure* failure) {
  memcpy(number, *at, sizeof *number);
  *at += sizeof *number;
  return *number >= 0 ||
         fail(failure, EINVAL, "ArrowSchema.metadata: %s negative: expected 0 or more, got %d",
              what, (int)*number);
}

static bool take_piece(const char** at, struct piece* piece, const char* what,
                       struct failure* failure) {
  int32_t size = 0;
  if (!take_length(at, &size, what, failure)) return false;
  *piece = (struct piece){*at, (size_t)size};
  *at += size;
  return true;
}

// The size of the metadata is unknown, so positive lengths cannot be validated.
static bool find_extension(const struct ArrowSchema* schema, struct extension* out,
                           struct failure* failure) {
  const char* at = schema->metadata;
  int32_t n_pairs = 0;
  struct piece key;
  struct piece value;
  bool has_name = false;
  bool has_parameters = false;
  *out = (struct extension){{"", 0}, {"", 0}};
  if (at == NULL) return true;
  if (!take_length(&at, &n_pairs, "number of pairs", failure)) return false;
  for (int32_t i = 0; i < n_pairs; ++i) {
    if (!take_piece(&at, &key, "length of a key", failure) ||
        !take_piece(&at, &value, "length of a value", failure)) {
      return false;
    }
    if (is_text(key, EXTENSION_NAME)) {  // if a key is repeated, the first one wins
      if (!has_name) out->name = value;
      has_name = true;
    } else if (is_text(key, EXTENSION_METADATA)) {
      if (!has_parameters) out->parameters = value;
      has_parameters = true;
    }
  }
  return true;
}

// --- JSON ---

#define MOST_JSON_LEVELS 32  // bounds the recursion

// Each function advances past the text it accepts and returns false for other text.
struct json {
  const char* at;
  const char* end;
};

// Returns the next character that is not white space, or 0 at the end.
static char json_peek(struct json* json) {
  while (json->at < json->end && strchr(" \t\r\n", *json->at) != NULL && *json->at != '\0') {
    ++json->at;
  }
  return json->at < json->end ? *json->at : '\0';
}

static bool json_take(struct json* json, char expected) {
  if (json_peek(json) != expected || json->at == json->end) return false;
  ++json->at;
  return true;
}

// Reads a string without decoding its escapes.
static bool json_string(struct json* json, struct piece* out) {
  if (!json_take(json, '"')) return false;
  const char* start = json->at;
  for (; json->at < json->end; ++json->at) {
    if (*json->at == '"') {
      *out = (struct piece){start, (size_t)(json->at - start)};
      ++json->at;
      return true;
    }
    if (*json->at == '\\' && json->at + 1 < json->end) ++json->at;
  }
  return false;
}

static bool json_size(struct json* json, int64_t* out) {
  int64_t value = 0;
  const char first = json_peek(json);
  if (first < '0' || first > '9') return false;
  for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; ++json->at) {
    const int digit = *json->at - '0';
    if (value > (INT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  return true;
}

// Reads an array of sizes. Sizes beyond the tensor limit are counted but not stored.
static bool json_sizes(struct json* json, int64_t* out, int32_t* n_out) {
  int64_t size = 0;
  *n_out = 0;
  if (!json_take(json, '[')) return false;
  if (json_take(json, ']')) return true;
  do {
    if (!json_size(json, &size)) return false;
    if (*n_out < FLETCHING_TENSOR_DIMENSIONS) out[*n_out] = size;
    if (*n_out <= FLETCHING_TENSOR_DIMENSIONS) ++*n_out;
  } while (json_take(json, ','));
  return json_take(json, ']');
}

static bool json_skip(struct json* json, int level);

static bool json_skip_group(struct json* json, char open, int level) {
  const char close = open == '[' ? ']' : '}';
  struct piece key;
  (void)json_take(json, open);
  if (json_take(json, close)) return true;
  do {
    if (open == '{' && (!json_string(json, &key) || !json_take(json, ':'))) return false;
    if (!json_skip(json, level + 1)) return false;
  } while (json_take(json, ','));
  return json_take(json, close);
}

// Skips any value.
static bool json_skip(struct json* json, int level) {
  struct piece text;
  const char first = json_peek(json);
  if (first == '"') return json_string(json, &text);
  if (first == '[' || first == '{') {
    return level < MOST_JSON_LEVELS && json_skip_group(json, first, level);
  }
  const char* start = json->at;
  while (json->at < json->end && strchr(",]} \t\r\n", *json->at) == NULL) ++json->at;
  return json->at > start;
}

// Calls `read(json, key, out)` for each member of an object. The object must be the whole text.
static bool json_object(struct piece text, bool (*read)(struct json*, struct piece, void*),
                        void* out) {
  struct json json = {text.text, text.text + text.size};
  struct piece key;
  if (!json_take(&json, '{')) return false;
  if (!json_take(&json, '}')) {
    do {
      if (!json_string(&json, &key) || !json_take(&json, ':') || !read(&json, key, out)) {
        return false;
      }
    } while (json_take(&json, ','));
    if (!json_take(&json, '}')) return false;
  }
  (void)json_peek(&json);
  return json.at == json.end;
}

// --- arrow.fixed_shape_tensor ---

struct tensor_shape {
  int64_t shape[FLETCHING_TENSOR_DIMENSIONS];  // in memory order: the last varies fastest
  // Index into `shape` for each dimension of the logical tensor.
  int64_t permutation[FLETCHING_TENSOR_DIMENSIONS];
  int32_t ndim;
  int32_t n_permutation;
};

static bool read_shape_member(struct json* json, struct piece key, void* out) {
  struct tensor_shape* shape = out;
  if (is_text(key, "shape")) return json_sizes(json, shape->shape, &shape->ndim);
  if (is_text(key, "permutation") && json_peek(json) == '[') {
    return json_sizes(json, shape->permutation, &shape->n_permutation);
  }
  return json_skip(json, 0);
}

static bool is_permutation(const struct tensor_shape* shape) {
  bool seen[FLETCHING_TENSOR_DIMENSIONS] = {false};
  if (shape->n_permutation != shape->ndim) return false;
  for (int32_t i = 0; i < shape->ndim; ++i) {
    const int64_t axis = shape->permutation[i];
    if (axis >= shape->ndim || seen[axis]) return false;
    seen[axis] = true;
  }
  return true;
}

static bool read_tensor_shape(struct piece parameters, struct tensor_shape* out,
                              struct failure* failure) {
  const char* why = NULL;
  out->ndim = 0;
  out->n_permutation = 0;
  if (!json_object(parameters, read_shape_member, out)) {
    why = "malformed: expected the form {\"shape\":[2,3],\"permutation\":[1,0]}";
  } else if (out->ndim > FLETCHING_TENSOR_DIMENSIONS) {
    return true;  // the caller rejects it
  } else if (out->ndim == 0) {
    why = "no shape: expected one size or more";
  } else if (out->n_permutation == 0) {
    for (; out->n_permutation < out->ndim; ++out->n_permutation) {
      out->permutation[out->n_permutation] = out->n_permutation;
    }
  } else if (!is_permutation(out)) {
    why = "wrong permutation: expected each dimension of the shape once";
  }
  return why == NULL ||
         fail(failure, EINVAL, "%s of %s: %s, got %s", EXTENSION_METADATA, FIXED_SHAPE_TENSOR, why,
              quote_bytes(parameters.text, parameters.size).text);
}

// --- arrow.opaque ---

struct opaque_type {
  struct piece type_name;
  struct piece vendor_name;
};

static bool read_opaque_member(struct json* json, struct piece key, void* out) {
  struct opaque_type* type = out;
  if (is_text(key, "type_name")) return json_string(json, &type->type_name);
  if (is_text(key, "vendor_name")) return json_string(json, &type->vendor_name);
  return json_skip(json, 0);
}

// Returns the DLPack type of arrow.opaque, or NULL for any other extension type.
static const struct tensor_type* opaque_of(const struct extension* extension) {
  struct opaque_type type = {{"", 0}, {"", 0}};
  if (!is_text(extension->name, OPAQUE_TYPE) ||
      !json_object(extension->parameters, read_opaque_member, &type) ||
      !is_text(type.vendor_name, tensor_vendor)) {
    return NULL;
  }
  return type_named(type.type_name.text, type.type_name.size);
}

#endif  // FLETCHING_CORE_TENSOR_EXTENSION_H
