"""Memory of the stand-in for the CUDA driver, for libraries in a machine without a GPU."""

import standin

address = standin.Gpu().memory
