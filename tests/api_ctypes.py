# SPDX-License-Identifier: Apache-2.0
"""A Python program that steers its regions through ctypes."""

import ctypes
from ctypes import byref, c_char_p, c_int, c_int32, c_size_t, c_uint32, \
    c_uint64, c_void_p

SUCCESS, UNKNOWN, UNBALANCED = 0, 4, 5
REPLAYING = 3
READ, WRITTEN = 1, 2
RUNS = 5
BYTES = 256


class Info(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("state", c_int),
                ("state_text", c_char_p), ("last_fallback", c_char_p)] + [
                    (name, c_uint64) for name in (
                        "runs", "replayed_runs", "plain_runs", "recordings",
                        "calls", "swallowed", "launches", "patched",
                        "variants", "chunks", "nodes", "host_bytes",
                        "device_bytes", "builds", "build_ns")]


class Buffer(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("base", c_uint64), ("bytes", c_uint64),
                ("offset", c_uint64), ("op", c_uint64), ("kernel", c_char_p),
                ("argument", c_int32), ("argument_offset", c_uint32),
                ("memory", c_int), ("access", c_uint32)]


cgshim = ctypes.CDLL(None)
cgshim.cgshim_last_error_text.restype = c_char_p
cgshim.cgshim_version.restype = c_char_p
cgshim.cgshim_region_name.restype = c_char_p
cgshim.cgshim_region_name.argtypes = [c_size_t]
cgshim.cgshim_region_count.restype = c_size_t
cuda = ctypes.CDLL("libcuda.so.1")


def check(error):
    assert error == SUCCESS, (error, cgshim.cgshim_last_error_text())


def open_driver():
    context = c_void_p()
    stream = c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuStreamCreate(byref(stream), 1))
    return stream


def alloc():
    address = c_uint64()
    check(cuda.cuMemAlloc_v2(byref(address), c_size_t(BYTES)))
    return address


def run(name, stream, x, y):
    check(cgshim.cgshim_region_begin(name))
    check(cuda.cuMemsetD32Async(x, c_uint32(7), c_size_t(BYTES // 4), stream))
    check(cuda.cuMemcpyDtoDAsync_v2(y, x, c_size_t(BYTES), stream))
    check(cgshim.cgshim_region_end(name))


def info_of(name):
    info = Info(size=ctypes.sizeof(Info))
    check(cgshim.cgshim_region_info(name, byref(info)))
    return info


def buffers_of(name):
    count = c_size_t()
    check(cgshim.cgshim_region_buffers(name, None, byref(count)))
    buffers = (Buffer * count.value)()
    buffers[0].size = ctypes.sizeof(Buffer)
    check(cgshim.cgshim_region_buffers(name, buffers, byref(count)))
    return buffers


def main():
    stream = open_driver()
    x, y = alloc(), alloc()
    for _ in range(RUNS):
        run(b"step", stream, x, y)
        run(b"solve it", stream, y, x)
        run(b"no rule", stream, x, y)

    assert cgshim.cgshim_version().count(b".") == 2
    assert [cgshim.cgshim_region_name(i)
            for i in range(cgshim.cgshim_region_count())] == [b"step",
                                                              b"solver"]
    for name in b"step", b"solver":
        info = info_of(name)
        assert info.state == REPLAYING, (info.state_text, info.last_fallback)
        assert info.state_text == b"replaying"
        assert (info.runs, info.replayed_runs) == (RUNS, RUNS - 1)
        assert (info.nodes, info.swallowed) == (2, 2 * (RUNS - 1))

    first, second = buffers_of(b"step")
    assert (first.base, second.base) == (x.value, y.value)
    assert (first.bytes, first.kernel, first.op) == (BYTES, b"set", 0)
    assert (second.kernel, second.op, second.argument) == (b"copy", 1, 0)
    assert (first.access, second.access) == (READ | WRITTEN, WRITTEN)

    assert cgshim.cgshim_region_recapture(b"no rule") == UNKNOWN
    assert b"step, solver" in cgshim.cgshim_last_error_text()
    assert cgshim.cgshim_region_end(b"step") == UNBALANCED
    check(cgshim.cgshim_destroy_all())
    assert info_of(b"solver").state_text == b"ended"


main()
