"""Some operations on arrays with CuPy. The results are not checked: kernels have no effect."""

import cupy

one = cupy.arange(1 << 16, dtype=cupy.float32)
for power in range(20):
    two = cupy.sin(one) * power + cupy.sqrt(one)
    one = two.reshape(256, 256).T.copy().ravel()
kernel = cupy.RawKernel('extern "C" __global__ void own(float *x) { x[threadIdx.x] += 1; }', "own")
for _ in range(50):
    kernel((256,), (256,), (one,))
print(cupy.asnumpy(one)[:4])
cupy.cuda.runtime.deviceSynchronize()
