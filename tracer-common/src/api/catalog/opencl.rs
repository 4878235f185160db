//! The OpenCL functions of AMD's implementation, libamdocl64. The loader (libOpenCL) calls them by the table of the platform, which has
//! the exported functions.

use super::{A0, A1, A2, A3, A4, A5};
use crate::api::{
    Class::{self, Copy, Memory, Query, Queue, Setup, Step, Submit, Sync},
    Function, Layer,
};

const fn cl(class: Class, name: &'static str) -> Function {
    Function::new(Layer::OpenCl, class, name)
}

/// The functions as `cl.h` declares them. The stream of a call is its command queue. A function that creates an object returns it.
pub const ALL: &[Function] = &[
    // Kernels.
    cl(Submit, "clEnqueueNDRangeKernel").of(A1).on(A0),
    cl(Submit, "clEnqueueTask").of(A1).on(A0),
    cl(Submit, "clEnqueueNativeKernel").on(A0),
    cl(Step, "clSetKernelArg").of(A0),
    cl(Step, "clSetKernelArgSVMPointer").of(A0),
    // Copies and fills. The object is the destination, or the buffer that the host reads.
    cl(Copy, "clEnqueueReadBuffer").of(A1).bytes(A4).on(A0),
    cl(Copy, "clEnqueueWriteBuffer").of(A1).bytes(A4).on(A0),
    cl(Copy, "clEnqueueCopyBuffer").of(A2).bytes(A5).on(A0),
    cl(Copy, "clEnqueueFillBuffer").of(A1).bytes(A5).on(A0),
    cl(Copy, "clEnqueueReadBufferRect").of(A1).on(A0),
    cl(Copy, "clEnqueueWriteBufferRect").of(A1).on(A0),
    cl(Copy, "clEnqueueCopyBufferRect").of(A2).on(A0),
    cl(Copy, "clEnqueueReadImage").of(A1).on(A0),
    cl(Copy, "clEnqueueWriteImage").of(A1).on(A0),
    cl(Copy, "clEnqueueCopyImage").of(A2).on(A0),
    cl(Copy, "clEnqueueCopyImageToBuffer").of(A2).on(A0),
    cl(Copy, "clEnqueueCopyBufferToImage").of(A2).on(A0),
    cl(Copy, "clEnqueueFillImage").of(A1).on(A0),
    cl(Copy, "clEnqueueMapBuffer").of(A1).bytes(A5).on(A0).value(),
    cl(Copy, "clEnqueueMapImage").of(A1).on(A0).value(),
    cl(Copy, "clEnqueueUnmapMemObject").of(A1).on(A0),
    cl(Copy, "clEnqueueSVMMemcpy").of(A2).bytes(A4).on(A0),
    cl(Copy, "clEnqueueSVMMemFill").of(A1).bytes(A4).on(A0),
    cl(Copy, "clEnqueueSVMMap").of(A3).on(A0),
    cl(Copy, "clEnqueueSVMUnmap").of(A1).on(A0),
    cl(Copy, "clEnqueueMigrateMemObjects").on(A0),
    cl(Copy, "clEnqueueSVMMigrateMem").on(A0),
    // Memory.
    cl(Memory, "clCreateBuffer").bytes(A2).value(),
    cl(Memory, "clCreateSubBuffer").of(A0).value(),
    cl(Memory, "clCreateImage").value(),
    cl(Memory, "clCreateImage2D").value(),
    cl(Memory, "clCreateImage3D").value(),
    cl(Memory, "clReleaseMemObject").of(A0),
    cl(Memory, "clSVMAlloc").bytes(A2).value(),
    cl(Memory, "clSVMFree").of(A1).nothing(),
    cl(Memory, "clEnqueueSVMFree").on(A0),
    // Queues.
    cl(Queue, "clCreateCommandQueue").value(),
    cl(Queue, "clCreateCommandQueueWithProperties").value(),
    cl(Queue, "clReleaseCommandQueue").of(A0).on(A0),
    cl(Queue, "clFlush").of(A0).on(A0),
    // Waits, markers, events.
    cl(Sync, "clFinish").of(A0).on(A0),
    cl(Sync, "clWaitForEvents"),
    cl(Sync, "clEnqueueMarker").on(A0),
    cl(Sync, "clEnqueueMarkerWithWaitList").on(A0),
    cl(Sync, "clEnqueueBarrier").on(A0),
    cl(Sync, "clEnqueueBarrierWithWaitList").on(A0),
    cl(Sync, "clEnqueueWaitForEvents").on(A0),
    cl(Sync, "clCreateUserEvent").value(),
    cl(Sync, "clSetUserEventStatus").of(A0),
    cl(Sync, "clSetEventCallback").of(A0),
    cl(Sync, "clReleaseEvent").of(A0),
    // Contexts, programs, kernels.
    cl(Setup, "clCreateContext").value(),
    cl(Setup, "clCreateContextFromType").value(),
    cl(Setup, "clReleaseContext").of(A0),
    cl(Setup, "clCreateProgramWithSource").value(),
    cl(Setup, "clCreateProgramWithBinary").value(),
    cl(Setup, "clCreateProgramWithIL").value(),
    cl(Setup, "clBuildProgram").of(A0),
    cl(Setup, "clCompileProgram").of(A0),
    cl(Setup, "clLinkProgram").value(),
    cl(Setup, "clReleaseProgram").of(A0),
    cl(Setup, "clCreateKernel").of(A0).value(),
    cl(Setup, "clCreateKernelsInProgram").of(A0),
    cl(Setup, "clReleaseKernel").of(A0),
    // Queries.
    cl(Query, "clGetDeviceIDs"),
    cl(Query, "clGetDeviceInfo").of(A0),
    cl(Query, "clGetKernelWorkGroupInfo").of(A0),
    cl(Query, "clGetEventInfo").of(A0),
    cl(Query, "clGetEventProfilingInfo").of(A0),
    cl(Query, "clGetMemObjectInfo").of(A0),
];
