"""Runs examples/pylibcudf_column.py while its producer waits at a gate, for test_examples.py."""

from rmm.pylibrmm.stream import Stream

import cuda
import pylibcudf_column as example
import standin
from fletching import pending_releases


def main() -> None:
    with standin.gpu() as gpu:
        cuda.use_device(0)
        ours = Stream()
        whole = example.read(example.write(gpu.gated().number), ours)
        pending = pending_releases().pending  # the columns are gone
        gpu.stream().is_idle()  # finishes all work that does not wait at the gate
        gpu.open()
        values = set(whole.to_arrow(stream=ours).to_pylist())
        del whole
        standin.settled()
    print(f"{pending} arrays are kept, the values are {values}")


if __name__ == "__main__":
    main()
