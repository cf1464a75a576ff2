# Compares the public headers listed in README and included by the umbrella header with the folder:
# cmake -DINCLUDE=cpp/include -DREADME=cpp/README.md -P check_public.cmake
# Internal headers are in fletching/detail.
function(compare what expected actual)
  set(missing ${expected})
  set(unknown ${actual})
  list(REMOVE_ITEM missing "" ${actual})
  list(REMOVE_ITEM unknown "" ${expected})
  foreach(header IN LISTS missing)
    message(SEND_ERROR "${what}: header is not listed: expected ${header}, or the header in fletching/detail")
  endforeach()
  foreach(header IN LISTS unknown)
    message(SEND_ERROR "${what}: ${header}: expected a public header in ${INCLUDE}")
  endforeach()
endfunction()

file(GLOB headers RELATIVE "${INCLUDE}" "${INCLUDE}/fletching/*.h" "${INCLUDE}/fletching/*.hpp")

# The first column of the tables in README.
file(STRINGS "${README}" rows REGEX "^[|] `fletching/")
set(listed "")
foreach(row IN LISTS rows)
  string(REGEX REPLACE "^[|]([^|]*)[|].*" "\\1" cell "${row}")
  string(REGEX MATCHALL "`[^`]+`" names "${cell}")
  string(REPLACE "`" "" names "${names}")
  list(APPEND listed ${names})
endforeach()
compare("${README}" "${headers}" "${listed}")

set(umbrella "${INCLUDE}/fletching/fletching.hpp")
file(STRINGS "${umbrella}" included REGEX "^#include ")
list(TRANSFORM included REPLACE "^#include \"(.*)\"$" "\\1")
set(expected ${headers})
list(FILTER expected INCLUDE REGEX "[.]hpp$")
list(FILTER expected EXCLUDE REGEX "/(fletching|sycl|metal)[.]hpp$")
compare("${umbrella}" "${expected}" "${included}")
