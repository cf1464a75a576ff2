# fletching_standin_errors(header names output): a table of the results that the header enumerates as
# `NAME = number`, for a regular expression of the names. Of two names for a number the first counts.
function(fletching_standin_errors header names output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  file(READ "${header}" _text)
  string(REGEX MATCHALL "\n *${names} *=[ \n]*[0-9]+" _matches "${_text}")
  set(_entries "")
  set(_seen "")
  foreach(_match IN LISTS _matches)
    string(REGEX MATCHALL "[A-Za-z0-9_]+" _words "${_match}")
    list(GET _words 0 _name)
    list(GET _words 1 _number)
    if(_number IN_LIST _seen)
      continue()
    endif()
    list(APPEND _seen "${_number}")
    string(REGEX REPLACE "^(CUDA_ERROR_|CUDA_|hipError|hip)" "" _text "${_name}")
    string(REGEX REPLACE "([a-z])([A-Z])" "\\1 \\2" _text "${_text}")
    string(REPLACE "_" " " _text "${_text}")
    string(TOLOWER "${_text}" _text)
    string(APPEND _entries "    {${_number}, \"${_name}\", \"${_text} (stand-in)\"},\n")
  endforeach()
  list(LENGTH _seen _count)
  if(_count LESS 20)
    message(FATAL_ERROR "${header} has ${_count} results of the form ${names} = number; "
      "the expression in tests/standin/CMakeLists.txt no longer fits it")
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${output}" CONTENT
    "// Made by tests/standin/errors.cmake.
namespace {
struct Error {
  int number;
  const char* name;
  const char* text;
};
constexpr std::array<Error, @_count@> kErrors{{
@_entries@}};
}  // namespace
" @ONLY)
endfunction()
