// SPDX-License-Identifier: Apache-2.0
//
// Memory of objects that support the buffer protocol.
#ifndef FLETCHING_PYTHON_BUFFER_VIEW_HPP
#define FLETCHING_PYTHON_BUFFER_VIEW_HPP

#include <memory>

#include "python.hpp"

namespace fletching::python {

/// A view of another object's memory. Any thread may destroy it.
class BufferView {
 public:
  /// Raises the object's BufferError if it has no contiguous memory.
  explicit BufferView(nb::handle object) : view_(std::make_unique<Py_buffer>()) {
    if (PyObject_GetBuffer(object.ptr(), view_.get(), PyBUF_FORMAT | PyBUF_ND) != 0) {
      view_.reset();
      throw nb::python_error();
    }
  }
  BufferView(BufferView&&) noexcept = default;
  BufferView& operator=(BufferView&&) = delete;
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  ~BufferView() {
    if (view_ == nullptr) return;
    const AnyThreadGil gil;
    // The exporter may have stored pointers into the view, so the whole view is leaked.
    gil ? PyBuffer_Release(view_.get()) : static_cast<void>(view_.release());
  }

  const Py_buffer& operator*() const noexcept { return *view_; }
  const Py_buffer* operator->() const noexcept { return view_.get(); }

 private:
  std::unique_ptr<Py_buffer> view_;
};

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_BUFFER_VIEW_HPP
