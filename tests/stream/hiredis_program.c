/* hiredis's own calls over a stream, as hiredis_test.py wants them.
 *
 *   hiredis_program SERVER_PID       a server on 127.0.0.1:6379, which is stopped and killed in the end */

#include <hiredis/hiredis.h>
/* hiredis comes first */
#include <ringbolt/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(what)                                                            \
  do {                                                                          \
    if (!(what)) {                                                              \
      fprintf(stderr, "%d: not so: %s (%s)\n", __LINE__, #what, says(context)); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static const char* says(const redisContext* context) {
  return context && context->err ? context->errstr : ringbolt_stream_error();
}

enum { LIMIT_MS = 20000, SHORT_MS = 200 };

static redisContext* connect_to(ringbolt_stream_service* service, uint16_t port, uint64_t timeout_ms) {
  return ringbolt_hiredis_connect(service, "127.0.0.1", port, NULL, LIMIT_MS, timeout_ms);
}

static void values(redisContext* context) {
  static const size_t sizes[] = {0, 1, 16384, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 16 << 20};
  char* value = (char*)malloc(16 << 20);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (size_t at = 0; at < sizes[i]; ++at) {
      value[at] = (char)(at * 167 + (at >> 8) * 13 + i);
    }
    redisReply* reply = (redisReply*)redisCommand(context, "SET key %b", value, sizes[i]);
    EXPECT(reply && strcmp(reply->str, "OK") == 0);
    freeReplyObject(reply);
    reply = (redisReply*)redisCommand(context, "GET key");
    EXPECT(reply && reply->len == sizes[i] && memcmp(reply->str, value, sizes[i]) == 0);
    freeReplyObject(reply);
  }
  free(value);
}

static void pipeline(redisContext* context) {
  enum { COUNT = 10000 };
  for (int i = 0; i < COUNT; ++i) {
    EXPECT(redisAppendCommand(context, i % 2 ? "GET key%d" : "SET key%d %d", i / 2, i) == REDIS_OK);
  }
  for (int i = 0; i < COUNT; ++i) {
    redisReply* reply = NULL;
    EXPECT(redisGetReply(context, (void**)&reply) == REDIS_OK);
    EXPECT(i % 2 ? atoi(reply->str) == i - 1 : strcmp(reply->str, "OK") == 0);
    freeReplyObject(reply);
  }
}

int main(int argc, char** argv) {
  redisContext* context = NULL;
  ringbolt_stream_service* service = NULL;
  EXPECT(argc == 2);
  const pid_t server = atoi(argv[1]);
  EXPECT(ringbolt_stream_service_create(NULL, &service) == 0);

  context = connect_to(service, 7, LIMIT_MS);
  EXPECT(context && context->err == REDIS_ERR_IO && strstr(context->errstr, "refused"));
  EXPECT(redisCommand(context, "PING") == NULL);
  redisFree(context);

  context = connect_to(service, 6379, LIMIT_MS);
  EXPECT(context && !context->err);
  values(context);
  pipeline(context);
  redisContext* other = connect_to(service, 6379, SHORT_MS);
  kill(server, SIGSTOP);
  EXPECT(redisCommand(other, "PING") == NULL && other->err == REDIS_ERR_TIMEOUT);
  redisFree(other);
  kill(server, SIGKILL);
  EXPECT(redisCommand(context, "PING") == NULL && (context->err == REDIS_ERR_EOF || context->err == REDIS_ERR_IO));
  EXPECT(redisReconnect(context) == REDIS_ERR);
  redisFree(context);
  ringbolt_stream_service_destroy(service);
  puts("ok");
  return 0;
}
