#pragma once

/* hiredis, 1.1 or later, over RDMA (docs/stream.md): a redisContext whose bytes go through a stream. For the blocking
 * calls: redisCommand(), redisAppendCommand(), redisGetReply() and their kin, unchanged.
 *
 * Include <hiredis/hiredis.h> first: this header declares nothing without it. In C, and in C++20. Link with
 * -lringbolt-stream -lhiredis.
 *
 * Not for redisAsyncContext: hiredis waits for POLLOUT on a descriptor, and a stream's is readable for both directions.
 * redisReconnect() and redisSetTimeout() do not know streams and answer REDIS_ERR: make a new one, and take the
 * function below. Thread contract: hiredis's, one thread at a time. */

#include <ringbolt/stream.h>

#ifdef HIREDIS_MAJOR

#if HIREDIS_MAJOR < 1 || (HIREDIS_MAJOR == 1 && HIREDIS_MINOR < 1)
#error "hiredis 1.1 or later is needed: older ones have no table of functions that could be replaced"
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ringbolt_hiredis {
  ringbolt_stream* stream; /* owned */
  uint64_t timeout_ms;
} ringbolt_hiredis;

enum { RINGBOLT_HIREDIS_DRAIN_MS = 200 }; /* for what was written last to reach the server when a context is freed */

/* The stream of a context, for its device and statistics; the context's. */
static inline ringbolt_stream* ringbolt_hiredis_stream(const redisContext* context) {
  const ringbolt_hiredis* of = (const ringbolt_hiredis*)context->privctx;
  return of ? of->stream : NULL;
}

/* How long each later call of this context may wait, in milliseconds: REDIS_ERR_TIMEOUT when it passed, after which the
 * context is of no use any more, as ever with hiredis. UINT64_MAX: for ever. */
static inline void ringbolt_hiredis_set_timeout(redisContext* context, uint64_t timeout_ms) {
  ((ringbolt_hiredis*)context->privctx)->timeout_ms = timeout_ms;
}

static inline ssize_t ringbolt_hiredis_failed(redisContext* context, int code) {
  context->err = code == ETIMEDOUT ? REDIS_ERR_TIMEOUT : code == ENOMEM ? REDIS_ERR_OOM : REDIS_ERR_IO;
  snprintf(context->errstr, sizeof context->errstr, "%s", ringbolt_stream_error());
  errno = code;
  return -1;
}

/* hiredis's contract: bytes, 0 for "later", a negative number with err and errstr set. */
static inline ssize_t ringbolt_hiredis_read(redisContext* context, char* data, size_t size) {
  const ringbolt_hiredis* of = (const ringbolt_hiredis*)context->privctx;
  size_t n = 0;
  const int code = ringbolt_stream_read(of->stream, data, size, of->timeout_ms, &n);
  if (code != 0) {
    return code == EAGAIN ? 0 : ringbolt_hiredis_failed(context, code);
  }
  if (n == 0) {
    context->err = REDIS_ERR_EOF;
    snprintf(context->errstr, sizeof context->errstr, "Server closed the connection");
    return -1;
  }
  return (ssize_t)n;
}

static inline ssize_t ringbolt_hiredis_write(redisContext* context) {
  const ringbolt_hiredis* of = (const ringbolt_hiredis*)context->privctx;
  size_t n = 0;
  const int code = ringbolt_stream_write(of->stream, context->obuf, sdslen(context->obuf), of->timeout_ms, &n);
  if (code != 0) {
    return code == EAGAIN ? 0 : ringbolt_hiredis_failed(context, code);
  }
  return (ssize_t)n;
}

/* The descriptor is the stream's: hiredis must not close it. */
static inline void ringbolt_hiredis_close(redisContext* context) {
  if (context->privctx && context->fd != REDIS_INVALID_FD) {
    ringbolt_stream_close(ringbolt_hiredis_stream(context), RINGBOLT_HIREDIS_DRAIN_MS);
  }
  context->fd = REDIS_INVALID_FD;
}

static inline void ringbolt_hiredis_free(void* privctx) {
  if (privctx) {
    ringbolt_stream_destroy(((ringbolt_hiredis*)privctx)->stream);
    free(privctx);
  }
}

/* Connects as redisConnectWithTimeout() does, and like it returns a context whose `err` is to be looked at: errstr says
 * why there is no connection, or no RDMA. It never becomes TCP. NULL: out of memory. Freed by redisFree(). `options`
 * may be NULL; timeout_ms is of each later call, as above. */
static inline redisContext* ringbolt_hiredis_connect(ringbolt_stream_service* service, const char* host, uint16_t port,
                                                     const ringbolt_stream_options* options,
                                                     uint64_t connect_timeout_ms, uint64_t timeout_ms) {
  static const redisContextFuncs kFunctions = {.close = ringbolt_hiredis_close,
                                               .free_privctx = ringbolt_hiredis_free,
                                               .async_read = NULL,
                                               .async_write = NULL,
                                               .read = ringbolt_hiredis_read,
                                               .write = ringbolt_hiredis_write};
  ringbolt_hiredis* made = (ringbolt_hiredis*)calloc(1, sizeof *made);
  redisContext* context = made ? redisConnectFd(REDIS_INVALID_FD) : NULL;
  if (!context) {
    free(made);
    return NULL;
  }
  context->privctx = made;
  context->funcs = &kFunctions;
  made->timeout_ms = timeout_ms;
  int code = ringbolt_stream_connect(service, host, port, options, connect_timeout_ms, &made->stream);
  if (code == 0) {
    code = ringbolt_stream_fd(made->stream, &context->fd);
  }
  if (code != 0) {
    ringbolt_hiredis_failed(context, code);
  }
  return context;
}

#endif /* HIREDIS_MAJOR */
