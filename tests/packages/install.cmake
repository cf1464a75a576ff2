# Installs the build to a temporary prefix, moves the prefix, and checks its contents.
set(first "${FOLDER}/installed-first")
set(prefix "${FOLDER}/prefix")
file(REMOVE_RECURSE "${first}" "${prefix}")
execute_process(COMMAND ${CMAKE_COMMAND} --install "${BUILD}" --prefix "${first}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME "${first}" "${prefix}")

# The installed headers must be exactly the tree's headers.
foreach(root "${SOURCE}/cpp/include" "${prefix}/include")
  file(GLOB_RECURSE headers LIST_DIRECTORIES false RELATIVE "${root}" "${root}/*")
  list(SORT headers)
  if(NOT DEFINED in_tree)
    set(in_tree "${headers}")
  elseif(NOT headers STREQUAL in_tree)
    message(SEND_ERROR "cpp/include has ${in_tree}, installed is ${headers}")
  endif()
endforeach()

# No text may contain a folder of this build, and each kind of file must exist.
file(GLOB_RECURSE texts "${prefix}/*.cmake" "${prefix}/*.pc")
list(LENGTH texts count)
if(count LESS 6)
  message(SEND_ERROR "${prefix} has ${count} files of CMake and pkg-config: ${texts}")
endif()
foreach(text IN LISTS texts)
  file(READ "${text}" content)
  foreach(folder "${SOURCE}" "${BUILD}" "${first}")
    string(FIND "${content}" "${folder}" position)
    if(NOT position EQUAL -1)
      message(SEND_ERROR "${text} names ${folder}, so the package cannot be moved")
    endif()
  endforeach()
endforeach()

# The program must run from its new location.
execute_process(COMMAND "${prefix}/bin/fletching-inspect" devices
  OUTPUT_VARIABLE devices COMMAND_ERROR_IS_FATAL ANY)
if(NOT devices MATCHES "^cpu +real")
  message(SEND_ERROR "fletching-inspect devices printed ${devices}")
endif()
