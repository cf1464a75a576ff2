# Links fletching-extract for the wheel of fletching-tools. Debian's archives name libLLVM.so as their dependency, so
# they are listed here by file. --gc-sections halves the size.
set(_archives "")
foreach(_name Tooling Frontend Driver Serialization Parse Sema Analysis Edit ASTMatchers AST Lex Basic Support APINotes)
  list(APPEND _archives "$<TARGET_FILE:clang${_name}>")
endforeach()
execute_process(
  COMMAND "${LLVM_TOOLS_BINARY_DIR}/llvm-config" --link-static --libfiles
    bitreader frontendopenmp option profiledata support targetparser windowsdriver
  OUTPUT_VARIABLE _llvm_archives OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(_llvm_archives NATIVE_COMMAND "${_llvm_archives}")

# libgcc_s and libc are the machine's: every Linux with glibc has them. static.cpp replaces the one function of glibc 2.36,
# so that glibc 2.34 is enough.
target_sources(fletching-extract PRIVATE static.cpp)
target_link_options(fletching-extract PRIVATE
  -static-libstdc++ LINKER:--gc-sections LINKER:--as-needed LINKER:--build-id=sha1 LINKER:--strip-all)
target_link_libraries(fletching-extract PRIVATE
  -Wl,--start-group ${_archives} ${_llvm_archives} -Wl,--end-group -l:libz.a -l:libzstd.a)
