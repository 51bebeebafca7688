/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of operation in random programs. */
#ifndef RND_RANDOM_KINDS_H
#define RND_RANDOM_KINDS_H


/* Each is: name, group, weight in it, use of `to`, sort of `to`,
 * number of `from`, their sort, flags, text. In the text %s is the stream, %t
 * %a %b %c the buffers, %v the value, %w the words, %g the launch's grid, block
 * and shared memory, %e %f the events, %m the module, %n the name of a range
 * and %r its number. */
#define RND_KINDS(_kind) \
    _kind(AXPY, LAUNCHES, 6, WRITE, ANY_MEMORY, 1, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.axpy, %w, %s, %t, %a, %w, %v)") \
    _kind(SCALE, LAUNCHES, 4, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.scale, %w, %s, %t, %w, %v)") \
    _kind(HASH, LAUNCHES, 4, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.hash, %w, %s, %t, %w, %v)") \
    _kind(ADD3, LAUNCHES, 5, WRITE, ANY_MEMORY, 2, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.add3, %w, %s, %t, %a, %b, %w)") \
    _kind(ADD4, LAUNCHES, 5, WRITE, ANY_MEMORY, 3, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.add4, %w, %s, %t, %a, %b, %c, %w)") \
    _kind(CHAIN, LAUNCHES, 4, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.chain, 1, %s, %t, %v)") \
    _kind(STRUCT, LAUNCHES, 3, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.struct, %w, %s, %t, shape(%v), %w)") \
    _kind(TABLE, LAUNCHES, 1, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.table, %w, %s, %t, table(%v), %w)") \
    _kind(GRID, LAUNCHES, 8, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.grid, %g, %s, %t, %w)") \
    _kind(GRID_EX, LAUNCHES, 2, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch_ex(%m.grid, %g, %s, %t, %w)") \
    _kind(TURN, LAUNCHES, 2, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "launch(%m.turn, %w, %s, %t, %w)") \
    _kind(TURN_BIG, LAUNCHES, 1, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_RESULT, \
          "launch(%m.turn, %w, 60000 bytes shared, %s, %t, %w)") \
    _kind(EXTRA, LAUNCHES, 1, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.scale, %w, %s, extra(%t, %w, %v))") \
    _kind(EX, LAUNCHES, 2, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "launch_ex(%m.scale, %w, %s, %t, %w, %v)") \
    _kind(COOPERATIVE, LAUNCHES, 1, WRITE, ANY_MEMORY, 1, ANY_MEMORY, \
          RND_ON_STREAM, \
          "launch_cooperative(%m.axpy, %w, %s, %t, %a, %w, %v)") \
    _kind(KERNEL_COPY, LAUNCHES, 2, WRITE, ANY_MEMORY, 1, ANY_MEMORY, \
          RND_ON_STREAM, "launch(%m.copy, %w, %s, %t, %a, %w)") \
    _kind(BAD_LAUNCH, LAUNCHES, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_RESULT, \
          "launch(%m.scale, 5000 threads in a block, %s)") \
    \
    _kind(SET8, WORK, 2, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuMemsetD8Async(%t, %v, %w, %s)") \
    _kind(SET16, WORK, 1, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuMemsetD16Async(%t, %v, %w, %s)") \
    _kind(SET32, WORK, 3, WRITE, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuMemsetD32Async(%t, %v, %w, %s)") \
    _kind(SET_2D8, WORK, 1, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuMemsetD2D8Async(%t, 32, %v, %w %% 24, 5, %s)") \
    _kind(SET_2D32, WORK, 2, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuMemsetD2D32Async(%t, 32, %v, 1 + %w %% 7, 5, %s)") \
    _kind(SET8_NOW, WORK, 1, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_DEFAULT, "cuMemsetD8(%t, %v, %w)") \
    _kind(SET32_NOW, WORK, 2, WRITE, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_DEFAULT, "cuMemsetD32(%t, %v, %w)") \
    _kind(SET_2D_NOW, WORK, 1, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_DEFAULT, \
          "cuMemsetD2D32(%t, 32, %v, 1 + %w %% 7, 5)") \
    _kind(DTOD, WORK, 3, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, RND_ON_STREAM, \
          "cuMemcpyDtoDAsync(%t, %a, 4 * %w, %s)") \
    _kind(DTOD_NOW, WORK, 2, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM | RND_DEFAULT, "cuMemcpyDtoD(%t, %a, 4 * %w)") \
    _kind(ANY, WORK, 4, WRITE, ANY_MEMORY, 1, ANY_MEMORY, RND_ON_STREAM, \
          "cuMemcpyAsync(%t, %a, 4 * %w, %s)") \
    _kind(ANY_NOW, WORK, 1, WRITE, ANY_MEMORY, 1, ANY_MEMORY, \
          RND_ON_STREAM | RND_DEFAULT, "cuMemcpy(%t, %a, 4 * %w)") \
    _kind(COPY_2D, WORK, 2, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM, "cuMemcpy2DAsync(%t, %a, 4 + %w %% 28, 4 rows from " \
          "%v %% 3, %s)") \
    _kind(COPY_2D_NOW, WORK, 1, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM | RND_DEFAULT, \
          "cuMemcpy2D(%t, %a, 4 + %w %% 28, 4 rows from %v %% 3)") \
    _kind(COPY_3D, WORK, 1, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM, "cuMemcpy3DAsync(%t, %a, 4 + %w %% 28, 3 rows, 2 " \
          "layers, %s)") \
    _kind(FROM_PINNED, WORK, 3, WRITE, DEVICE_ONLY, 1, PINNED_ONLY, \
          RND_ON_STREAM, "cuMemcpyHtoDAsync(%t, %a, 4 * %w, %s)") \
    _kind(TO_PINNED, WORK, 4, WRITE, PINNED_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM, "cuMemcpyDtoHAsync(%t, %a, 4 * %w, %s)") \
    _kind(FROM_PAGEABLE, WORK, 2, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuMemcpyHtoDAsync(%t, pageable(%v), 4 * %w, %s)") \
    _kind(TO_PAGEABLE, WORK, 1, UNUSED, ANY_MEMORY, 1, DEVICE_ONLY, \
          RND_ON_STREAM | RND_RESULT, \
          "cuMemcpyDtoHAsync(pageable, %a, 4 * %w, %s)") \
    _kind(FROM_PAGEABLE_NOW, WORK, 1, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_DEFAULT, \
          "cuMemcpyHtoD(%t, pageable(%v), 4 * %w)") \
    _kind(TO_PAGEABLE_NOW, WORK, 1, UNUSED, ANY_MEMORY, 1, DEVICE_ONLY, \
          RND_ON_STREAM | RND_DEFAULT | RND_RESULT, \
          "cuMemcpyDtoH(pageable, %a, 4 * %w)") \
    _kind(HOST_MIX, WORK, 2, WRITE, PINNED_ONLY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuLaunchHostFunc(%s, mix_words, %t)") \
    _kind(HOST_VALUE, WORK, 1, WRITE, PINNED_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuLaunchHostFunc(%s, mix_value, &{%t, %v})") \
    _kind(CAPTURE, LIVES, 2, WRITE, DEVICE_ONLY, 1, DEVICE_ONLY, \
          RND_ON_STREAM, "capture(%s) { axpy(%t, %a, %w, %v); hash(%t, %w, " \
          "%v); } and launch it 1 + %v %% 2 times") \
    \
    _kind(RECORD, EVENT_CALLS, 4, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuEventRecord(%e, %s)") \
    _kind(WAIT, EVENT_CALLS, 4, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuStreamWaitEvent(%s, %e, 0)") \
    _kind(EVENT_QUERY, EVENT_CALLS, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "cuEventQuery(%e)") \
    _kind(EVENT_ANEW, EVENT_CALLS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "cuEventDestroy(%e); cuEventCreate(&%e, %v %% 3)") \
    _kind(ELAPSED, EVENT_CALLS, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_RESULT, "synchronize(%e, %f); cuEventElapsedTime(%e, %f)") \
    \
    _kind(EVENT_SYNC, SYNCS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, RND_LOOKS, \
          "cuEventSynchronize(%e)") \
    _kind(EVENT_POLL, SYNCS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, RND_LOOKS, \
          "while (cuEventQuery(%e) != CUDA_SUCCESS)") \
    _kind(STREAM_SYNC, SYNCS, 3, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_LOOKS, "cuStreamSynchronize(%s)") \
    _kind(STREAM_POLL, SYNCS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM | RND_LOOKS, \
          "while (cuStreamQuery(%s) != CUDA_SUCCESS)") \
    _kind(STREAM_QUERY, SYNCS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuStreamQuery(%s)") \
    _kind(CONTEXT_SYNC, SYNCS, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_LOOKS, "cuCtxSynchronize()") \
    _kind(DUMP, SYNCS, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, RND_LOOKS, \
          "cuCtxSynchronize(); and copies of all device memory") \
    _kind(PINNED_WRITE, SYNCS, 3, HOST_WRITE, PINNED_ONLY, 0, ANY_MEMORY, 0, \
          "the host adds %v to %t") \
    _kind(ASK, SYNCS, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "cuCtxGetCurrent(); cuStreamIsCapturing(%s)") \
    \
    _kind(REPLACE, LIVES, 3, HOST_ORDER, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuMemFree(%t); cuMemAlloc(&%t); " \
          "cuMemsetD32Async(%t, %v, 64, %s)") \
    _kind(REPLACE_ASYNC, LIVES, 3, WRITE, DEVICE_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuMemFreeAsync(%t, %s); cuMemAllocAsync(&%t, %s); " \
          "cuMemsetD32Async(%t, %v, 64, %s)") \
    _kind(STREAM_ANEW, LIVES, 2, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuStreamDestroy(%s); " \
          "cuStreamCreateWithPriority(&%s, %v %% 2, -(%v / 2 %% 2))") \
    _kind(MODULE_ANEW, LIVES, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "unload(module[1]); %v %% 2 ? cuLibraryLoadData(&module[1]) : " \
          "cuModuleLoadData(&module[1])") \
    _kind(FUNCTION_LIMIT, LIVES, 1, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "cuFuncSetAttribute(module[1].turn, shared bytes, " \
          "%v %% 2 ? 60000 : 40000)") \
    \
    _kind(SET_FLAG, EDGES, 0, WRITE, FLAG_ONLY, 0, ANY_MEMORY, RND_ON_STREAM, \
          "launch(module[0].signal, 1, %s, %t, %v)") \
    _kind(SET_FLAG_HOST, EDGES, 0, WRITE, FLAG_ONLY, 0, ANY_MEMORY, \
          RND_ON_STREAM, "cuLaunchHostFunc(%s, set_word, &{%t, %v})") \
    _kind(POLL_FLAG, EDGES, 0, UNUSED, FLAG_ONLY, 0, ANY_MEMORY, RND_LOOKS, \
          "while (*%t != %v), without looking at any work") \
    _kind(PUSH, EDGES, 0, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "nvtxRangePushA(%n)") \
    _kind(PAUSE, EDGES, 0, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "usleep(100 + %v)") \
    _kind(POP, EDGES, 0, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "nvtxRangePop()") \
    _kind(START, EDGES, 0, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "range[%r] = nvtxRangeStartA(%n)") \
    _kind(END, EDGES, 0, UNUSED, ANY_MEMORY, 0, ANY_MEMORY, 0, \
          "nvtxRangeEnd(range[%r])")

#endif
