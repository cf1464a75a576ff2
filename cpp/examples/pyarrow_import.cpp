// SPDX-License-Identifier: Apache-2.0
//
// A Python extension in C++: takes an array from pyarrow, or from any library with the Arrow
// PyCapsule protocol, waits for it and adds up its values.
#include <Python.h>

#include <cerrno>
#include <cstdint>

#include "fletching/buffer.hpp"
#include "fletching/check_array.hpp"
#include "fletching/sync_event.hpp"

using namespace fletching;

// Moves the structs out of the capsules. Afterwards the owners release them, not the capsules.
static bool import_array(PyObject* object, Schema* schema, DeviceArray* array) {
  PyObject* pair = PyObject_CallMethod(object, "__arrow_c_device_array__", nullptr);
  PyObject *first = nullptr, *second = nullptr;
  bool good = pair != nullptr && PyArg_ParseTuple(pair, "OO", &first, &second) != 0;
  void* from = good ? PyCapsule_GetPointer(first, "arrow_schema") : nullptr;
  void* data = from != nullptr ? PyCapsule_GetPointer(second, "arrow_device_array") : nullptr;
  if (data != nullptr) {
    *schema = Schema(static_cast<ArrowSchema*>(from));
    *array = DeviceArray(static_cast<ArrowDeviceArray*>(data));
  }
  Py_XDECREF(pair);
  return data != nullptr;
}

static Result<std::int64_t> sum_of(const Schema& schema, const DeviceArray& array) noexcept {
  if (schema.format() != "l") return Error(EINVAL, "sum: wrong type: expected int64");
  if (Status checked = verify_array(*schema, *array); !checked) return checked.error();
  if (Status waited = SyncEvent(array).synchronize(); !waited) return waited.error();
  const auto values = buffer<std::int64_t>(array, 1);
  if (!values) return values.error();
  const auto valid = validity(array);
  if (!valid) return valid.error();
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < values->size(); ++i) sum += (*valid)[i] ? (*values)[i] : 0;
  return sum;
}

static PyObject* sum(PyObject* /*module*/, PyObject* object) {
  Schema schema;
  DeviceArray array;
  if (!import_array(object, &schema, &array)) return nullptr;
  PyThreadState* thread = PyEval_SaveThread();  // other Python threads run during the wait
  const Result<std::int64_t> result = sum_of(schema, array);
  array.release();  // any thread may release, also without the GIL
  PyEval_RestoreThread(thread);
  if (result.ok()) return PyLong_FromLongLong(*result);
  return PyErr_Format(PyExc_OSError, "%s", result.error().message().c_str());
}

static PyMethodDef methods[] = {{"sum", sum, METH_O, nullptr}, {}};
static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "columns", nullptr, 0, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit_columns() { return PyModule_Create(&module); }
