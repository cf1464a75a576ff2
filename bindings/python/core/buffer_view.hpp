// SPDX-License-Identifier: Apache-2.0
//
// Memory of objects that have the buffer protocol.
#ifndef FLETCHING_PYTHON_BUFFER_VIEW_HPP
#define FLETCHING_PYTHON_BUFFER_VIEW_HPP

#include <memory>

#include "python.hpp"

namespace fletching::python {

/// A view of another object's memory, until any thread destroys it.
class BufferView {
 public:
  /// Raises BufferError, from the object, when it has no memory that is in one piece.
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
    // What an exporter has set in its view may be a part of the view: it is leaked as a whole.
    gil ? PyBuffer_Release(view_.get()) : static_cast<void>(view_.release());
  }

  const Py_buffer& operator*() const noexcept { return *view_; }
  const Py_buffer* operator->() const noexcept { return view_.get(); }

 private:
  std::unique_ptr<Py_buffer> view_;
};

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_BUFFER_VIEW_HPP
