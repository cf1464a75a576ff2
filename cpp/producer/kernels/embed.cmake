# Writes a file as a byte array: -DNAME=cuda -DIMAGE=... -DOUTPUT=...
file(READ "${IMAGE}" hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(SUBSTRING "${NAME}" 0 1 first)
string(TOUPPER "${first}" first)
string(SUBSTRING "${NAME}" 1 -1 rest)
file(WRITE "${OUTPUT}" "#include \"kernels.hpp\"

namespace {
// One byte more: an array is not empty. Aligned as the loaders of device code ask for.
alignas(16) const unsigned char bytes[] = {${bytes}0};
}  // namespace

namespace fletching::producer {
const Image k${first}${rest}Image{bytes, ${size}};
}  // namespace fletching::producer
")
