// SPDX-License-Identifier: Apache-2.0
//
// Maps format strings to DLPack types.
#ifndef FLETCHING_CORE_TENSOR_TYPES_H
#define FLETCHING_CORE_TENSOR_TYPES_H

#include <stdlib.h>

#include "failure.h"
#include "fletching/tensor.h"
#include "tables/tensor_types.h"

#define N_ROWS(TABLE) (sizeof(TABLE) / sizeof(TABLE)[0])

// --- Sizes ---

// Computes a * b for non-negative numbers. Returns false and leaves *product unchanged on overflow.
static bool multiply(int64_t a, int64_t b, int64_t* product) {
  if (b != 0 && a > INT64_MAX / b) return false;
  *product = a * b;
  return true;
}

// Returns the stride of the next outer dimension. It overflows only if another dimension is empty;
// the result is then meaningless.
static int64_t next_step(int64_t step, int64_t extent) {
  int64_t product = INT64_MAX;
  (void)multiply(step, extent > 1 ? extent : 1, &product);
  return product;
}

// --- Foreign text ---

#define MOST_QUOTED 64

struct quoted {
  char text[MOST_QUOTED * 4 + 8];
};

// Quotes text as printable ASCII, truncated if long. Does not read past `size`.
static struct quoted quote_bytes(const char* text, size_t size) {
  static const char digits[] = "0123456789abcdef";
  struct quoted quoted;
  char* to = quoted.text;
  *to++ = '"';
  for (size_t i = 0; i < size && i < MOST_QUOTED; ++i) {
    const unsigned char byte = (unsigned char)text[i];
    if (byte == '"' || byte == '\\') *to++ = '\\';
    if (byte >= 0x20 && byte < 0x7F) {
      *to++ = (char)byte;
    } else {
      *to++ = '\\';
      *to++ = 'x';
      *to++ = digits[byte >> 4];
      *to++ = digits[byte & 15];
    }
  }
  memcpy(to, size > MOST_QUOTED ? "...\"" : "\"", size > MOST_QUOTED ? 5 : 2);
  return quoted;
}

static struct quoted quote(const char* text) {
  size_t size = 0;
  while (size <= MOST_QUOTED && text[size] != '\0') ++size;
  return quote_bytes(text, size);
}

// --- Formats ---

// The DLPack type of a format string.
struct tensor_format {
  bool is_list;
  bool is_binary;  // `size` bytes, which become one more dimension
  int64_t size;    // elements of a list or bytes of a binary value
  DLDataType type;
  const char* lost;  // the meaning that the storage does not preserve, or NULL
};

static bool no_tensor_type(const char* format, const char* why, const char* hint,
                           struct failure* failure) {
  return fail(failure, ENOTSUP, "ArrowSchema.format: no DLPack type for %s: %s%s",
              quote(format).text, why, hint);
}

static bool bad_format(const char* format, const char* what, struct failure* failure) {
  return fail(failure, EINVAL, "ArrowSchema.format: %s, got %s", what, quote(format).text);
}

// Parses an int32 and advances past it.
static bool take_int32(const char** text, int32_t* number) {
  const bool is_negative = **text == '-';
  const char* at = *text + (is_negative ? 1 : 0);
  int64_t value = 0;
  if (*at < '0' || *at > '9') return false;
  for (; *at >= '0' && *at <= '9'; ++at) {
    value = value * 10 + (*at - '0');
    if (value > INT32_MAX) return false;
  }
  *number = (int32_t)(is_negative ? -value : value);
  *text = at;
  return true;
}

static bool read_size(const char* format, struct tensor_format* out, struct failure* failure) {
  const char* at = strchr(format, ':') + 1;
  int32_t size = 0;
  if (!take_int32(&at, &size) || *at != '\0' || size < 0) {
    return bad_format(format,
                      "malformed size: expected one number from 0 to 2147483647 after the colon",
                      failure);
  }
  out->size = size;
  return true;
}

// Parses a comma and an int32.
static bool take_next(const char** text, int32_t* number) {
  if (**text != ',') return false;
  ++*text;
  return take_int32(text, number);
}

static bool read_decimal(const char* format, struct tensor_format* out, struct failure* failure) {
  static const struct {
    int32_t bits, digits;
  } widths[] = {{32, 9}, {64, 18}, {128, 38}, {256, 76}};
  const char* at = format + 2;
  int32_t precision = 0;
  int32_t scale = 0;
  int32_t bits = 128;
  if (!take_int32(&at, &precision) || !take_next(&at, &scale) ||
      (*at != '\0' && !take_next(&at, &bits)) || *at != '\0') {
    return bad_format(format, "malformed decimal: expected the form 'd:19,10' or 'd:9,2,32'",
                      failure);
  }
  for (size_t i = 0; i < N_ROWS(widths); ++i) {
    if (widths[i].bits != bits) continue;
    if (precision < 1 || precision > widths[i].digits) {
      return bad_format(format, "precision out of range for the width", failure);
    }
    if (bits > 64) return no_tensor_type(format, wide_decimal, "", failure);
    out->type = (DLDataType){kDLInt, (uint8_t)bits, 1};
    out->lost = lost_scale;
    return true;
  }
  return bad_format(format, "unknown width: expected 32, 64, 128 or 256", failure);
}

// Compares with a table entry. An entry that ends with a colon matches any parameters.
static bool is_format(const char* format, const char* known) {
  const size_t size = strlen(known);
  return known[size - 1] == ':' ? strncmp(format, known, size) == 0 : strcmp(format, known) == 0;
}

static bool refuse_format(const char* format, struct failure* failure) {
  for (size_t i = 0; i < N_ROWS(refused_formats); ++i) {
    if (is_format(format, refused_formats[i].format)) {
      return no_tensor_type(format, refused_formats[i].why, "", failure);
    }
  }
  return bad_format(format, "unknown: expected a format string of the C Data Interface", failure);
}

static bool read_tensor_format(const char* format, struct tensor_format* out,
                               struct failure* failure) {
  *out = (struct tensor_format){.size = 1};
  if (format == NULL) {
    return fail(failure, EINVAL, "ArrowSchema.format: NULL: expected a format string");
  }
  for (size_t i = 0; i < N_ROWS(tensor_types); ++i) {
    const struct tensor_type* row = &tensor_types[i];
    if (row->extension != NULL || strcmp(row->format, format) != 0) continue;
    out->type = (DLDataType){row->code, row->bits, 1};
    return true;
  }
  for (size_t i = 0; i < N_ROWS(stored_types); ++i) {
    if (!is_format(format, stored_types[i].format)) continue;
    out->type = (DLDataType){kDLInt, stored_types[i].bits, 1};
    out->lost = stored_types[i].lost;
    return true;
  }
  if (strncmp(format, "d:", 2) == 0) return read_decimal(format, out, failure);
  out->is_list = strncmp(format, "+w:", 3) == 0;
  out->is_binary = strncmp(format, "w:", 2) == 0;
  if (!out->is_list && !out->is_binary) return refuse_format(format, failure);
  out->type = (DLDataType){kDLUInt, 8, 1};
  if (out->is_binary) out->lost = lost_meaning;
  return read_size(format, out, failure);
}

// Whether this is a timestamp or duration as in NumPy: 64 bits, no time zone.
static bool is_plain_time(const char* format) {
  return strncmp(format, "tD", 2) == 0 ||
         (strncmp(format, "ts", 2) == 0 && strlen(format) == sizeof "tss:" - 1);
}

// --- Types ---

static struct quoted show_type(DLDataType type) {
  struct quoted shown;
  const char* name = data_type_code_name(type.code);
  char number[24];
  (void)snprintf(number, sizeof number, "unknown(%u)", (unsigned)type.code);
  const int length = snprintf(shown.text, sizeof shown.text, "%s of %u bits",
                              name != NULL ? name : number, (unsigned)type.bits);
  if (type.lanes != 1) {
    (void)snprintf(shown.text + length, sizeof shown.text - (size_t)length, " and %u lanes",
                   (unsigned)type.lanes);
  }
  return shown;
}

static const struct tensor_type* no_arrow_type(DLDataType type, const char* why,
                                               struct failure* failure) {
  (void)fail(failure, ENOTSUP, "DLTensor.dtype: no Arrow type for %s: %s", show_type(type).text,
             why);
  return NULL;
}

// Returns the row of a DLPack type, or NULL with the failure. The type's lanes may be a multiple of
// the row's. Values narrower than a byte have no row as storage, which would not preserve their
// type.
static const struct tensor_type* type_of(DLDataType type, bool is_padded, bool as_storage,
                                         struct failure* failure) {
  const bool is_narrow = type.bits % 8 != 0;
  if (type.lanes == 0) return no_arrow_type(type, "expected 1 lane or more, got 0", failure);
  if (type.bits == 0) {
    return no_arrow_type(type, "expected elements of whole bytes, got 0 bits", failure);
  }
  bool is_known = false;
  for (size_t i = 0; i < N_ROWS(tensor_types); ++i) {
    const struct tensor_type* row = &tensor_types[i];
    if (row->code != type.code || row->bits != type.bits) continue;
    is_known = true;
    if (!(is_narrow && as_storage) && type.lanes % row->lanes == 0 &&
        row->is_padded == (is_narrow && is_padded)) {
      return row;
    }
  }
  if (!is_narrow) return no_arrow_type(type, "expected a type that Arrow can store", failure);
  const char* why = is_padded ? "expected elements of whole bytes, got padded ones"
                              : "expected elements of whole bytes, got packed ones";
  if (is_known && as_storage) {
    why = is_padded ? "expected elements of whole bytes, got padded ones; hint: import without "
                      "as_storage"
                    : "expected elements of whole bytes, got packed ones; hint: import padded "
                      "ones, or lanes of whole bytes, without as_storage";
  } else if (is_known) {
    why =
        "expected elements of whole bytes, got packed ones; hint: export padded ones, or lanes "
        "of whole bytes";
  }
  return no_arrow_type(type, why, failure);
}

// Returns the row with the type name of arrow.opaque, or NULL if it is not a DLPack type.
static const struct tensor_type* type_named(const char* name, size_t size) {
  for (size_t i = 0; i < N_ROWS(tensor_types); ++i) {
    const char* known = tensor_types[i].type_name;
    if (known != NULL && strlen(known) == size && memcmp(known, name, size) == 0) {
      return &tensor_types[i];
    }
  }
  return NULL;
}

#endif  // FLETCHING_CORE_TENSOR_TYPES_H
