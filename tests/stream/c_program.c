/* A program in C that talks to itself: the header is C, and the library does what it says. Exit status 0: all went well. */

#include <ringbolt/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MS 20000

static void check(int code, const char* call) {
  if (code != 0) {
    fprintf(stderr, "%s: %s: %s\n", call, strerror(code), ringbolt_stream_error());
    exit(1);
  }
}

int main(void) {
  ringbolt_stream_service_options shared = {.struct_size = sizeof shared, .verbs = "soft"};
  ringbolt_stream_options options = {.struct_size = sizeof options, .receive_bytes = 65536, .receive_buffers = 2};
  const char* const allowed[] = {"127.0.0.0/8", NULL};
  ringbolt_stream_listener_options listening = {.struct_size = sizeof listening, .stream = &options, .allowed = allowed};
  ringbolt_stream_service* service = NULL;
  ringbolt_stream_listener* listener = NULL;
  ringbolt_stream* client = NULL;
  ringbolt_stream* server = NULL;
  ringbolt_stream_statistics seen = {.struct_size = sizeof seen};
  struct iovec pieces[2];
  char room[16];
  uint16_t port = 0;
  uint32_t events = 0;
  size_t n = 0;
  int tries;
  check(ringbolt_stream_service_create(&shared, &service), "create");
  check(ringbolt_stream_listen(service, "127.0.0.1", 0, &listening, &listener), "listen");
  check(ringbolt_stream_listener_port(listener, &port), "port");
  check(ringbolt_stream_connect(service, "127.0.0.1", port, &options, 0, &client), "connect");
  for (tries = 0; server == NULL && tries < LIMIT_MS; ++tries) { /* both ends are this thread's */
    check(ringbolt_stream_wait(client, RINGBOLT_STREAM_CONNECTED, 0, &events), "wait");
    ringbolt_stream_accept(listener, 1, &server);
  }
  check(ringbolt_stream_wait(client, RINGBOLT_STREAM_CONNECTED, LIMIT_MS, &events), "wait for the client");
  check(ringbolt_stream_wait(server, RINGBOLT_STREAM_CONNECTED, LIMIT_MS, &events), "wait for the server");
  pieces[0].iov_base = "to and ";
  pieces[0].iov_len = 7;
  pieces[1].iov_base = "fro";
  pieces[1].iov_len = 3;
  check(ringbolt_stream_writev(client, pieces, 2, LIMIT_MS, &n), "writev");
  check(ringbolt_stream_peek(server, LIMIT_MS, pieces), "peek");
  if (n != 10 || pieces[0].iov_len != 10 || memcmp(pieces[0].iov_base, "to and fro", 10) != 0) {
    fprintf(stderr, "%zu bytes came\n", pieces[0].iov_len);
    return 1;
  }
  check(ringbolt_stream_consume(server, 10), "consume");
  check(ringbolt_stream_get_statistics(client, &seen), "statistics");
  check(ringbolt_stream_close(server, LIMIT_MS), "close");
  check(ringbolt_stream_read(client, room, sizeof room, LIMIT_MS, &n), "read");
  if (n != 0 || seen.messages_sent != 1) {
    fprintf(stderr, "%zu bytes after the end, %lu messages\n", n, (unsigned long)seen.messages_sent);
    return 1;
  }
  ringbolt_stream_destroy(client);
  ringbolt_stream_destroy(server);
  ringbolt_stream_listener_destroy(listener);
  ringbolt_stream_service_destroy(service);
  return 0;
}
