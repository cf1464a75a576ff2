# Fails if the library exports a symbol without the prefix: -DNM=... -DLIBRARY=... -DPREFIX=...
execute_process(COMMAND ${NM} -D --defined-only -P ${LIBRARY}
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${text}")
set(count 0)
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^${PREFIX}[A-Za-z0-9_]+ T ")
    message(SEND_ERROR "${LIBRARY} shows '${line}'")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
if(count EQUAL 0)
  message(SEND_ERROR "${LIBRARY} shows no symbol at all")
endif()
