# Embeds the files of `fletching traces` as byte arrays: -DFOLDER=...
set(arrays "")
foreach(side Producer Consumer)
  string(TOLOWER "${side}" name)
  file(READ "${FOLDER}/${name}.json" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "extern const unsigned char k${side}Traces[] = {${bytes}0};\n")
endforeach()
file(WRITE "${FOLDER}/bytes.cpp" "namespace fletching::conformance {\n${arrays}}\n")
