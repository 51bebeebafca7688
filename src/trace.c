/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are small structs until they are written: noting one costs a lock
 * that nobody else wants, a clock and a copy. Text is made of them by whoever
 * writes.
 *
 * The file is an array of events in the trace format of Chrome. Of that format
 * alone Perfetto reads a file that lacks its end, as that of a process that was
 * killed does; so each event is written with the comma before it.
 *
 * Locks: a buffer's own, then the file's.
 */
#define _GNU_SOURCE
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "file.h"
#include "log.h"
#include "region.h"
#include "text.h"
#include "thread.h"

/* Events that a thread keeps until they are written: 64 KB. */
#define MAX_EVENTS  1024
/* Threads that have a buffer at a time. */
#define MAX_BUFFERS 512
#define MAX_NUMBERS 3
/* A thread that has a good moment writes what is older. */
#define MAX_AGE_NS  100000000u
/* Bytes that are written at once. */
#define MAX_TEXT    65536
#define MAX_EVENT_TEXT 4096
/* Kept free for the last event and the end. */
#define RESERVE     512
/* How long exit waits for a thread that notes something. */
#define EXIT_WAIT_MS 1000

typedef struct {
    const char *category;
    const char *name;   /* NULL: the region's */
    const char *text;   /* name of the text, NULL without */
    const char *number[MAX_NUMBERS]; /* names of the numbers, up to NULL */
    bool       is_mark; /* it has no duration */
} kind_t;

static const kind_t kinds[CGS_TRACE_NUM_KINDS] = {
    [CGS_TRACE_RUN]       = {"run", NULL, "how", {"run", "calls", "patched"},
                             false},
    [CGS_TRACE_SHUT_RUN]  = {"run", NULL, "how", {NULL}, false},
    [CGS_TRACE_BUILD]     = {"build", "build", NULL,
                             {"nodes", "device_bytes"}, false},
    [CGS_TRACE_LAUNCH]    = {"launch", "launch", NULL, {"nodes", "patched"},
                             false},
    [CGS_TRACE_ISSUE]     = {"issue", "issue call by call", NULL, {"calls"},
                             false},
    [CGS_TRACE_RECORDED]  = {"recorded", "recorded", NULL, {"variants"}, true},
    [CGS_TRACE_BARRIER]   = {"barrier", "barrier", "reason", {NULL}, true},
    [CGS_TRACE_FALLBACK]  = {"fallback", "fallback", "reason", {NULL}, true},
    [CGS_TRACE_GATE]      = {"gate", "gate", "state", {"runs"}, true},
    [CGS_TRACE_DESTROYED] = {"destroyed", "destroyed", "reason", {NULL}, true},
    [CGS_TRACE_LEFT_OUT]  = {"left_out", "events are left out", "reason",
                             {NULL}, true},
};

typedef struct {
    uint64_t   began_ns, ended_ns;
    const char *region, *text;
    uint64_t   number[MAX_NUMBERS];
    int32_t    tid;
    uint8_t    kind;
    bool       has_left; /* the thread that ended it is not the one of tid */
} event_t;

typedef struct buffer {
    cgs_lock_t    lock;
    struct buffer *next; /* by the file's lock */
    int           tid;
    char          name[16]; /* of the thread, as the kernel keeps it */
    bool          is_named; /* in the file */
    uint64_t      written_ns;
    uint32_t      num;
    event_t       event[MAX_EVENTS];
} buffer_t;

bool cgs_trace_on;

static struct {
    pthread_key_t   key;        /* frees a thread's buffer at its end */
    uint64_t        started_ns;
    atomic_bool     left_out;   /* an event had no buffer */

    pthread_mutex_t mutex;      /* for all below */
    const char      *shown;     /* name as the user gave it */
    cgs_file_t      file;
    pid_t           pid;
    bool            is_open;
    bool            is_ending;  /* the list of buffers stays as it is */
    uint64_t        bytes, max_bytes;
    cgs_text_t      text;       /* not yet written */
    buffer_t        *buffers;
    unsigned        num_buffers;
} trace = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
};

static __thread struct {
    buffer_t   *buffer;
    const char *shut_region; /* of the run that the gate sends plain */
    uint64_t   shut_ns;
} self;

/* ---- Text; under the file's lock ---- */

static void print_us(const char *name, uint64_t ns)
{
    cgs_text_print(&trace.text, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000,
                   (unsigned)(ns % 1000));
}

static void print_event(const event_t *event, char phase, uint64_t ns)
{
    const kind_t *kind = &kinds[event->kind];
    const char   *name = kind->name != NULL ? kind->name : event->region;
    cgs_text_t   *text = &trace.text;
    const char   *before = "";
    unsigned     i;

    cgs_text_print(text, ",\n{\"name\":");
    cgs_text_add_json(text, name);
    cgs_text_print(text, ",\"cat\":\"%s\",\"ph\":\"%c\"", kind->category,
                   phase);
    print_us("ts", ns);
    if (phase == 'X') {
        print_us("dur", event->ended_ns - ns);
    } else if (phase == 'i') {
        cgs_text_print(text, ",\"s\":\"t\"");
    } else {
        cgs_text_print(text, ",\"id\":\"0x%" PRIx64 "\"", event->began_ns);
    }
    cgs_text_print(text, ",\"pid\":%d,\"tid\":%d,\"args\":{", (int)trace.pid,
                   (int)event->tid);
    if ((kind->name != NULL) && (event->region != NULL)) {
        cgs_text_print(text, "\"region\":");
        cgs_text_add_json(text, event->region);
        before = ",";
    }
    if (kind->text != NULL) {
        cgs_text_print(text, "%s\"%s\":", before, kind->text);
        cgs_text_add_json(text, event->text != NULL ? event->text : "");
        before = ",";
    }
    for (i = 0; (i < MAX_NUMBERS) && (kind->number[i] != NULL); ++i) {
        cgs_text_print(text, "%s\"%s\":%" PRIu64, before, kind->number[i],
                       event->number[i]);
        before = ",";
    }
    cgs_text_print(text, "}}");
}

static void print_all(const event_t *event)
{
    if (kinds[event->kind].is_mark) {
        print_event(event, 'i', event->ended_ns);
    } else if (event->has_left) {
        /* No slice of either thread: those have to nest. */
        print_event(event, 'b', event->began_ns);
        print_event(event, 'e', event->ended_ns);
    } else {
        print_event(event, 'X', event->began_ns);
    }
}

static void print_name(const char *what, int tid, const char *name)
{
    cgs_text_print(&trace.text, "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%d,"
                   "\"tid\":%d,\"args\":{\"name\":", what, (int)trace.pid,
                   tid);
    cgs_text_add_json(&trace.text, name);
    cgs_text_print(&trace.text, "}}");
}

/* ---- File; under its lock ---- */

static void close_file(void)
{
    __atomic_store_n(&cgs_trace_on, false, __ATOMIC_RELAXED);
    trace.is_open = false;
    if (cgs_file_is_ours(&trace.file)) {
        close(trace.file.fd);
    }
    cgs_text_release(&trace.text);
}

/* What is in the file so far is whole, and is given its end if that can be. */
static void give_up(const char *problem)
{
    static const char end[] = "\n]\n";

    if (S_ISREG(trace.file.mode) && cgs_file_is_ours(&trace.file) &&
        (ftruncate(trace.file.fd, (off_t)trace.bytes) == 0)) {
        cgs_log_write(trace.file.fd, end, sizeof(end) - 1);
    }
    close_file();
    cgs_log_complain("CGSHIM_TRACE=%s: %s; the trace ends there", trace.shown,
                     problem);
}

static void write_text(void)
{
    int status;

    if (!trace.is_open || (trace.text.length == 0)) {
        return;
    }
    if (trace.text.failed) {
        give_up("out of memory");
        return;
    }
    if (!cgs_file_is_ours(&trace.file)) {
        give_up("the program has closed the file");
        return;
    }
    status = cgs_log_write(trace.file.fd, trace.text.data, trace.text.length);
    if (status != 0) {
        give_up(strerror(-status));
        return;
    }
    trace.bytes      += trace.text.length;
    trace.text.length = 0;
}

static void write_end(void)
{
    cgs_text_print(&trace.text, "\n]\n");
    write_text();
    if (trace.is_open) {
        close_file();
    }
}

/* The file is as large as it may be. */
static void write_last(const event_t *event)
{
    event_t last = {
        .ended_ns = event->ended_ns,
        .text     = "the file is as large as it may be",
        .tid      = event->tid,
        .kind     = CGS_TRACE_LEFT_OUT,
    };

    print_event(&last, 'i', last.ended_ns);
    write_end();
}

static void write_event(const event_t *event)
{
    size_t before = trace.text.length;

    if (!trace.is_open) {
        return;
    }
    print_all(event);
    if (trace.bytes + trace.text.length + RESERVE > trace.max_bytes) {
        trace.text.length = before;
        write_last(event);
    } else if (trace.text.length >= MAX_TEXT) {
        write_text();
    }
}

/* A child that fork handlers were not told of has its parent's buffers. */
static bool is_of_this_process(void)
{
    return trace.pid == getpid();
}

static void write_events(buffer_t *buffer)
{
    uint32_t i;

    if (!trace.is_open || !is_of_this_process()) {
        return;
    }
    if (!buffer->is_named) {
        cgs_text_print(&trace.text, ",\n");
        print_name("thread_name", buffer->tid, buffer->name);
        buffer->is_named = true;
    }
    for (i = 0; i < buffer->num; ++i) {
        write_event(&buffer->event[i]);
    }
    write_text();
}

/* ---- Buffers ---- */

/* Under the buffer's lock. */
static void write_buffer(buffer_t *buffer, uint64_t now_ns)
{
    int saved_errno = errno;

    pthread_mutex_lock(&trace.mutex);
    write_events(buffer);
    pthread_mutex_unlock(&trace.mutex);
    buffer->num        = 0;
    buffer->written_ns = now_ns;
    errno              = saved_errno;
}

/* @return false where there are enough. */
static bool add_buffer(buffer_t *buffer)
{
    bool has_room;

    pthread_mutex_lock(&trace.mutex);
    has_room = trace.is_open && !trace.is_ending &&
               (trace.num_buffers < MAX_BUFFERS);
    if (has_room) {
        buffer->next  = trace.buffers;
        trace.buffers = buffer;
        ++trace.num_buffers;
    }
    pthread_mutex_unlock(&trace.mutex);
    return has_room;
}

/* @return false where it has to stay for whoever ends the trace. */
static bool remove_buffer(buffer_t *buffer)
{
    buffer_t **at;
    bool     removed;

    pthread_mutex_lock(&trace.mutex);
    removed = !trace.is_ending;
    for (at = &trace.buffers; removed && (*at != NULL); at = &(*at)->next) {
        if (*at == buffer) {
            *at = buffer->next;
            --trace.num_buffers;
            break;
        }
    }
    pthread_mutex_unlock(&trace.mutex);
    return removed;
}

/* The thread ends. */
static void release_buffer(void *pointer)
{
    buffer_t *buffer = pointer;

    if (!is_of_this_process()) {
        return;
    }
    self.buffer = NULL;
    cgs_lock(&buffer->lock);
    write_buffer(buffer, 0);
    cgs_unlock(&buffer->lock);
    if (remove_buffer(buffer)) {
        free(buffer);
    }
}

static buffer_t *create_buffer(void)
{
    int      saved_errno = errno;
    buffer_t *buffer     = malloc(sizeof(*buffer));

    if (buffer == NULL) {
        errno = saved_errno;
        return NULL;
    }
    memset(buffer, 0, offsetof(buffer_t, event));
    buffer->tid        = (int)syscall(SYS_gettid);
    buffer->written_ns = cgs_clock_ns();
    prctl(PR_GET_NAME, buffer->name);
    if (!add_buffer(buffer)) {
        free(buffer);
        buffer = NULL;
    } else {
        pthread_setspecific(trace.key, buffer);
    }
    self.buffer = buffer;
    errno       = saved_errno;
    return buffer;
}

static buffer_t *own_buffer(void)
{
    return self.buffer != NULL ? self.buffer : create_buffer();
}

/* An event of this thread's that has ended now. */
static void add(event_t *event)
{
    buffer_t *buffer = own_buffer();

    if (buffer == NULL) {
        atomic_store_explicit(&trace.left_out, true, memory_order_relaxed);
        return;
    }
    cgs_lock(&buffer->lock);
    if (buffer->num == MAX_EVENTS) {
        write_buffer(buffer, cgs_clock_ns());
    }
    event->ended_ns = cgs_clock_ns();
    if (event->tid == 0) {
        event->tid = buffer->tid;
    }
    event->has_left              = event->tid != buffer->tid;
    buffer->event[buffer->num++] = *event;
    cgs_unlock(&buffer->lock);
}

void cgs_trace_write_some(void)
{
    buffer_t *buffer = self.buffer;
    uint64_t now_ns  = cgs_clock_ns();

    if (buffer == NULL) {
        return;
    }
    cgs_lock(&buffer->lock);
    if ((buffer->num > MAX_EVENTS / 2) ||
        ((buffer->num > 0) && (now_ns - buffer->written_ns > MAX_AGE_NS))) {
        write_buffer(buffer, now_ns);
    }
    cgs_unlock(&buffer->lock);
}

/* ---- Events ---- */

void cgs_trace_add_mark(cgs_trace_kind_t kind, const char *region,
                        const char *text, uint64_t number)
{
    event_t event = {
        .region = region,
        .text   = text,
        .number = {number},
        .kind   = (uint8_t)kind,
    };

    add(&event);
}

void cgs_trace_add_slice(cgs_trace_kind_t kind, const char *region,
                         uint64_t began_ns, uint64_t first, uint64_t second)
{
    event_t event = {
        .began_ns = began_ns,
        .region   = region,
        .number   = {first, second},
        .kind     = (uint8_t)kind,
    };

    /* It may have begun before the trace did. */
    if (began_ns >= trace.started_ns) {
        add(&event);
    }
}

void cgs_trace_add_begin(cgs_region_t *region)
{
    buffer_t *buffer = own_buffer();

    region->trace.tid      = buffer != NULL ? buffer->tid : 0;
    region->trace.began_ns = cgs_clock_ns();
}

/* As the report counts it: `recorded` are its recordings, `replayed` and
 * `variant` its replayed runs. */
static const char *how_it_went(const cgs_cursor_t *cursor)
{
    if (cursor->has_recorded && (cursor->mode != CGS_RUN_PLAIN)) {
        return "recorded";
    }
    if (cursor->launched && !cursor->diverged) {
        return cursor->moved ? "variant" : "replayed";
    }
    if (cursor->launched) {
        return "replayed in part";
    }
    return cursor->watches ? "plain: the gate" :
           cursor->mode == CGS_RUN_PLAIN ? "plain" : "compared";
}

static event_t run_event(const cgs_region_t *region, const char *how)
{
    const cgs_cursor_t *cursor = &region->cursor;
    uint64_t           begin   = region->trace.began_ns;

    return (event_t){
        /* A run may have begun before the trace did. */
        .began_ns = begin > trace.started_ns ? begin : trace.started_ns,
        .region   = region->name,
        .text     = how,
        .number   = {region->stats.runs, cursor->calls,
                     region->stats.patched - cursor->patched_before},
        .tid      = region->trace.tid,
        .kind     = CGS_TRACE_RUN,
    };
}

void cgs_trace_add_run(cgs_region_t *region)
{
    event_t event = run_event(region, how_it_went(&region->cursor));

    region->trace = (cgs_trace_run_t){.gate = region->trace.gate};
    add(&event);
}

void cgs_trace_add_gate(cgs_region_t *region)
{
    static const char *const states[] = {
        [CGS_GATE_SETTLING] = "settling",
        [CGS_GATE_REPLAYS]  = "replayed runs are timed",
        [CGS_GATE_PLAINS]   = "plain runs are timed",
        [CGS_GATE_OPEN]     = "open",
        [CGS_GATE_CLOSED]   = "shut",
    };
    const cgs_gate_t *gate = &region->gate;

    if (region->trace.gate != gate->state) {
        region->trace.gate = gate->state;
        cgs_trace_add_mark(CGS_TRACE_GATE, region->name, states[gate->state],
                           gate->left);
    }
}

void cgs_trace_add_shut(const char *region)
{
    event_t event = {
        .began_ns = self.shut_ns,
        .region   = self.shut_region,
        .text     = "plain: the gate",
        .kind     = CGS_TRACE_SHUT_RUN,
    };

    if (region == NULL) {
        if (self.shut_region != NULL) {
            add(&event);
            cgs_trace_write_some();
        }
    } else {
        self.shut_ns = cgs_clock_ns();
    }
    self.shut_region = region;
}

/* ---- Begin and end ---- */

/* Two processes must not write to one file. Not all file systems can tell. */
static int claim_file(void)
{
    if (!S_ISREG(trace.file.mode)) {
        return 0;
    }
    if ((flock(trace.file.fd, LOCK_EX | LOCK_NB) != 0) &&
        (errno == EWOULDBLOCK)) {
        return -EBUSY;
    }
    return ftruncate(trace.file.fd, 0) == 0 ? 0 : -errno;
}

static int open_file(const char *file)
{
    char name[PATH_MAX];
    int  status = cgs_text_file_name(file, sizeof(name), name);

    if (status == 0) {
        status = cgs_file_open(name, O_APPEND, &trace.file);
    }
    if (status != 0) {
        return status;
    }
    status = claim_file();
    if (status != 0) {
        close(trace.file.fd);
    }
    return status;
}

static void begin_file(const char *file, uint64_t max_bytes)
{
    trace.shown      = file;
    trace.max_bytes  = max_bytes;
    trace.pid        = getpid();
    trace.started_ns = cgs_clock_ns();
    trace.is_open    = true;
    /* All that is ever needed but for strange names, so that writing later
     * allocates nothing. */
    cgs_text_reserve(&trace.text, MAX_TEXT + MAX_EVENT_TEXT);
    cgs_text_print(&trace.text, "[\n");
    print_name("process_name", (int)trace.pid, program_invocation_short_name);
    write_text();
}

void cgs_trace_start(const char *file, uint64_t max_bytes)
{
    int cancel_state, status;

    if (file == NULL) {
        return;
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    status = -pthread_key_create(&trace.key, release_buffer);
    if (status == 0) {
        status = open_file(file);
    }
    if (status == 0) {
        pthread_mutex_lock(&trace.mutex);
        begin_file(file, max_bytes);
        __atomic_store_n(&cgs_trace_on, trace.is_open, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&trace.mutex);
    } else {
        cgs_log_complain("CGSHIM_TRACE=%s: cannot be opened (%s); there is no "
                         "trace", file, status == -EBUSY ? "another process "
                         "writes to it, %p in the name would tell them apart" :
                         strerror(-status));
    }
    pthread_setcancelstate(cancel_state, NULL);
}

/* The thread that has the lock may never come back. */
static bool lock_file(void)
{
    int milliseconds = EXIT_WAIT_MS;

    while (pthread_mutex_trylock(&trace.mutex) != 0) {
        if (milliseconds-- <= 0) {
            return false;
        }
        usleep(1000);
    }
    return true;
}

static void write_at_exit(buffer_t *buffer)
{
    if (cgs_lock_for(&buffer->lock, EXIT_WAIT_MS)) {
        if (lock_file()) {
            write_events(buffer);
            pthread_mutex_unlock(&trace.mutex);
        }
        buffer->num = 0;
        cgs_unlock(&buffer->lock);
    }
}

static void write_open_run(cgs_region_t *region)
{
    event_t event;
    bool    is_open = false;

    if (cgs_lock_for(&region->lock, EXIT_WAIT_MS)) {
        is_open = (region->trace.began_ns != 0) && atomic_load(&region->busy);
        event   = run_event(region, "open at the end");
        cgs_unlock(&region->lock);
    }
    if (is_open && lock_file()) {
        event.ended_ns = cgs_clock_ns();
        write_event(&event);
        pthread_mutex_unlock(&trace.mutex);
    }
}

static void write_left_out(void)
{
    event_t event = {
        .ended_ns = cgs_clock_ns(),
        .text     = "there was no memory, or too many threads",
        .tid      = (int)trace.pid,
        .kind     = CGS_TRACE_LEFT_OUT,
    };

    if (atomic_load(&trace.left_out)) {
        write_event(&event);
    }
}

void cgs_trace_finish(void)
{
    cgs_region_t *region;
    buffer_t     *buffer;

    if (!cgs_trace_enabled() || !lock_file()) {
        return;
    }
    __atomic_store_n(&cgs_trace_on, false, __ATOMIC_RELAXED);
    trace.is_ending = true;
    pthread_mutex_unlock(&trace.mutex);

    for (buffer = trace.buffers; buffer != NULL; buffer = buffer->next) {
        write_at_exit(buffer);
    }
    for (region = cgs_region_first(); region != NULL; region = region->next) {
        write_open_run(region);
    }
    if (lock_file()) {
        write_left_out();
        if (trace.is_open) {
            write_end();
        }
        pthread_mutex_unlock(&trace.mutex);
    }
}

void cgs_trace_abandon(void)
{
    if (cgs_trace_enabled()) {
        __atomic_store_n(&cgs_trace_on, false, __ATOMIC_RELAXED);
        /* The parent's claim to it must not outlive the parent. */
        if (cgs_file_is_ours(&trace.file)) {
            close(trace.file.fd);
        }
    }
}
