// Assertions for the declarations, whichever header made them. The three numbers are for targets
// with 64-bit pointers, with 32-bit pointers and int64_t members aligned to 8, and with 32-bit
// pointers and int64_t members aligned to 4.

#if defined(__cplusplus)
#define FLETCHING_ASSERT(name, condition, text) static_assert(condition, text)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define FLETCHING_ASSERT(name, condition, text) _Static_assert(condition, text)
#else
#define FLETCHING_ASSERT(name, condition, text) \
  typedef char fletching_assert_##name[(condition) ? 1 : -1]
#endif

#ifndef FLETCHING_INT64_PROBE
#define FLETCHING_INT64_PROBE
struct FletchingInt64Probe {
  char before;
  int64_t value;
};
#endif

#define FLETCHING_BY_TARGET(pointer64, align8, align4)              \
  (sizeof(void*) == 8                                 ? (pointer64) \
   : offsetof(struct FletchingInt64Probe, value) == 8 ? (align8)    \
                                                      : (align4))
#define FLETCHING_TYPE(name) /*{ keyword }*/name
#define FLETCHING_ASSERT_STRUCT(type, pointer64, align8, align4)                                   \
  FLETCHING_ASSERT(type,                                                                           \
                   sizeof(FLETCHING_TYPE(type)) == FLETCHING_BY_TARGET(pointer64, align8, align4), \
                   #type " has another size than its specification says")
#define FLETCHING_ASSERT_FIELD(type, field, field_size, pointer64, align8, align4)                 \
  FLETCHING_ASSERT(                                                                                \
      type##_##field,                                                                              \
      sizeof(((FLETCHING_TYPE(type)*)0)->field) == (field_size) &&                                 \
          offsetof(FLETCHING_TYPE(type), field) == FLETCHING_BY_TARGET(pointer64, align8, align4), \
      #type "." #field " is not where its specification says, or has another size")
#define FLETCHING_ASSERT_VALUE(name, expected)                  \
  FLETCHING_ASSERT(value_##name, (int64_t)(name) == (expected), \
                   #name " has another value than its specification says")

/*% for struct in structs %*/
FLETCHING_ASSERT_STRUCT(/*{ struct.name }*/, /*{ layouts[struct.name] | map(attribute="size") | join(", ") }*/);
/*% for field in struct.fields %*/
/*{ field | assert_field(struct, layouts[struct.name]) }*/
/*% endfor %*/

/*% endfor %*/
/*% for interface in interfaces %*/
/*% for constant in constants[interface.id] if constant.value is number and constant.type != "uint32" %*/
FLETCHING_ASSERT_VALUE(/*{ constant.name }*/, /*{ constant.value }*/);
/*% endfor %*/
/*% endfor %*/
/*% for minor, found in enumerators.items() %*/
/*% if minor %*/
#if DLPACK_MINOR_VERSION >= /*{ minor }*/
/*% endif %*/
/*% for enumerator in found %*/
FLETCHING_ASSERT_VALUE(/*{ enumerator.name }*/, /*{ enumerator.value }*/);
/*% endfor %*/
/*% if minor %*/
#endif
/*% endif %*/
/*% endfor %*/

#undef FLETCHING_ASSERT_VALUE
#undef FLETCHING_ASSERT_FIELD
#undef FLETCHING_ASSERT_STRUCT
#undef FLETCHING_TYPE
#undef FLETCHING_BY_TARGET
#undef FLETCHING_ASSERT
