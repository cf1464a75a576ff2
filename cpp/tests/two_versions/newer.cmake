# Creates the headers of a fake newer version, with a different version number and different error
# numbers.
#   cmake -DFROM=cpp/include -DTO=FOLDER -P newer.cmake
file(REMOVE_RECURSE "${TO}")
file(COPY "${FROM}/" DESTINATION "${TO}")

function(edit file pattern replacement)
  file(READ "${TO}/fletching/${file}" _text)
  string(REGEX REPLACE "${pattern}" "${replacement}" _edited "${_text}")
  if(_edited STREQUAL _text)
    message(FATAL_ERROR "${FROM}/fletching/${file}: nothing matches ${pattern}; correct ${CMAKE_CURRENT_LIST_FILE}")
  endif()
  file(WRITE "${TO}/fletching/${file}" "${_edited}")
endfunction()

edit(version.h "FLETCHING_VERSION_NAMESPACE v[0-9_]+" "FLETCHING_VERSION_NAMESPACE v999_0_0")
edit(result.hpp "return code_; }" "return code_ + 1000; }")
