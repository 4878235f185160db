"""Builds an OpenCL kernel, and runs it 200 times on each of two queues, between copies."""

import numpy
import pyopencl as cl

SOURCE = """
__kernel void twice(__global const float *a, __global float *b) { size_t i = get_global_id(0); b[i] = 2 * a[i]; }
"""

devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
assert devices, "no OpenCL device"
context = cl.Context(devices[:1])
kernel = cl.Kernel(cl.Program(context, SOURCE).build(), "twice")
numbers = numpy.arange(65536, dtype=numpy.float32)
for _ in range(2):
    queue = cl.CommandQueue(context)
    source = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=numbers)
    target = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, numbers.nbytes)
    for _ in range(200):
        kernel(queue, numbers.shape, None, source, target)
    cl.enqueue_copy(queue, numpy.empty_like(numbers), target)
    queue.finish()
