"""Some steps of tinygrad on the GPU that DEV names. The results are not checked: kernels have no effect."""

from tinygrad import Tensor

for size in (16, 64, 256):
    one, two = Tensor.rand(size, size), Tensor.rand(size, size)
    (one @ two).relu().sum().realize()
    ((one + two).softmax() * 3).tolist()
