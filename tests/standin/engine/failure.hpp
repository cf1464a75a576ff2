// SPDX-License-Identifier: Apache-2.0
// The results that the engine uses. CUDA and HIP use the same numbers; each stand-in asserts them
// against its vendor's header.
#ifndef FLETCHING_STANDIN_FAILURE_HPP
#define FLETCHING_STANDIN_FAILURE_HPP

namespace fletching::standin {

enum class Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kContextIsDestroyed = 709,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureMerge = 902,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCaptureImplicit = 906,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

// Thrown inside the library only; call() turns it into the vendor's error number.
struct Failure {
  Status status;
};

[[noreturn]] inline void fail(Status status) { throw Failure{status}; }

inline void require(bool holds, Status otherwise) {
  if (!holds) fail(otherwise);
}

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_FAILURE_HPP
