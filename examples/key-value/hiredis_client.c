/* hiredis over RDMA: stores and fetches a value. Works with a server of the same folder and with Valkey.
 *
 *   hiredis_client ADDRESS [PORT]
 *
 *   cc -O2 hiredis_client.c $(pkg-config --cflags --libs hiredis ringbolt-stream) -o hiredis_client
 *
 * hiredis 1.1 or later, which Debian 12 does not have. */

#include <hiredis/hiredis.h>
/* hiredis comes first */
#include <ringbolt/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs("usage: hiredis_client ADDRESS [PORT]\n", stderr);
    return 2;
  }
  ringbolt_stream_service* service = NULL;
  if (ringbolt_stream_service_create(NULL, &service) != 0) {
    fprintf(stderr, "no RDMA: %s\n", ringbolt_stream_error());
    return 1;
  }
  const uint16_t port = (uint16_t)(argc > 2 ? atoi(argv[2]) : 6379);
  redisContext* context = ringbolt_hiredis_connect(service, argv[1], port, NULL, 5000, 5000);
  if (!context || context->err) {
    fprintf(stderr, "%s\n", context ? context->errstr : "out of memory");
    redisFree(context);
    return 1;
  }
  freeReplyObject(redisCommand(context, "SET greeting %s", "hello"));
  redisReply* reply = (redisReply*)redisCommand(context, "GET greeting");
  char device[64];
  ringbolt_stream_device(ringbolt_hiredis_stream(context), device, sizeof device);
  printf("%s, over %s\n", reply ? reply->str : context->errstr, device);
  const int status = reply ? 0 : 1;
  freeReplyObject(reply);
  redisFree(context);
  ringbolt_stream_service_destroy(service);
  return status;
}
