/* Calls of rdma_cm that are refused, and connections that come to nothing. As failures.c: names to standard error, names
 * and lines to standard output; with "right" one connection is made as it should be, and nothing else. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(condition) \
  do { if (!(condition)) fprintf(stderr, "cm_failures.c:%d: %s: errno %d\n", __LINE__, #condition, errno), exit(2); } while (0)
#define REFUSED(name, condition) \
  do { fprintf(stderr, "== %s\n", name); printf("%s %d\n", name, __LINE__); NEED(condition); } while (0)

static struct rdma_event_channel* channel;
static struct sockaddr_in own;

static struct rdma_cm_id* new_id(void) {
  struct rdma_cm_id* id;
  NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
  return id;
}
static struct rdma_cm_event* event_of(enum rdma_cm_event_type type) {
  struct rdma_cm_event* event;
  NEED(!rdma_get_cm_event(channel, &event));
  if (event->event != type) fprintf(stderr, "unexpected: %s, status %d\n", rdma_event_str(event->event), event->status), exit(2);
  return event;
}
static void take(enum rdma_cm_event_type type) { NEED(!rdma_ack_cm_event(event_of(type))); }

static struct sockaddr_in at_port(uint16_t port) {
  struct sockaddr_in address = own;
  address.sin_port = htons(port);
  return address;
}
static void resolve(struct rdma_cm_id* id, uint16_t port) {
  struct sockaddr_in target = at_port(port);
  NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr*)&target, 2000));
  take(RDMA_CM_EVENT_ADDR_RESOLVED);
  NEED(!rdma_resolve_route(id, 2000));
  take(RDMA_CM_EVENT_ROUTE_RESOLVED);
}
static void add_qp(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
  NEED(!rdma_create_qp(id, NULL, &init));
}
static struct rdma_cm_id* listener_at(uint16_t port) {
  struct rdma_cm_id* id = new_id();
  struct sockaddr_in address = at_port(port);
  NEED(!rdma_bind_addr(id, (struct sockaddr*)&address) && !rdma_listen(id, 4));
  return id;
}
static void drop(struct rdma_cm_id* id) {
  if (id->qp) rdma_destroy_qp(id);
  NEED(!rdma_destroy_id(id));
}

static void right(void) {
  struct rdma_cm_id *server = listener_at(7471), *client = new_id();
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  resolve(client, 7471), add_qp(client);
  NEED(!rdma_connect(client, &param));
  struct rdma_cm_event* asked = event_of(RDMA_CM_EVENT_CONNECT_REQUEST);
  struct rdma_cm_id* peer = asked->id;
  add_qp(peer);
  NEED(!rdma_accept(peer, &param) && !rdma_ack_cm_event(asked));
  take(RDMA_CM_EVENT_ESTABLISHED), take(RDMA_CM_EVENT_ESTABLISHED);
  NEED(!rdma_disconnect(client));
  take(RDMA_CM_EVENT_DISCONNECTED);
  NEED(!rdma_disconnect(peer));
  take(RDMA_CM_EVENT_DISCONNECTED);
  drop(client), drop(peer), drop(server);
}

static void wrong(void) {
  struct rdma_cm_id *server = listener_at(7471), *client = new_id(), *other;
  struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
  struct sockaddr_in taken = at_port(7471), far = at_port(0), odd = own;
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
  char data[256] = {0};
  int mask = 0;
  REFUSED("port-space", rdma_create_id(channel, &other, NULL, (enum rdma_port_space)0x999));
  REFUSED("port-taken", rdma_bind_addr(client, (struct sockaddr*)&taken));
  far.sin_addr.s_addr = htonl(0xc0000207); /* 192.0.2.7, which is nobody's */
  REFUSED("foreign-address", rdma_bind_addr(client, (struct sockaddr*)&far));
  odd.sin_family = AF_UNIX;
  REFUSED("family", rdma_bind_addr(client, (struct sockaddr*)&odd));
  REFUSED("route-first", rdma_resolve_route(client, 2000));
  REFUSED("connect-first", rdma_connect(client, &param));
  REFUSED("qp-first", rdma_create_qp(client, NULL, &init));
  REFUSED("attributes-first", rdma_init_qp_attr(client, &attr, &mask));
  REFUSED("disconnect-first", rdma_disconnect(client));
  REFUSED("accept-own", rdma_accept(client, &param));
  REFUSED("reject-own", rdma_reject(client, NULL, 0));
  resolve(client, 7472);
  REFUSED("resolve-twice", rdma_resolve_addr(client, NULL, (struct sockaddr*)&taken, 2000));
  REFUSED("listen-late", rdma_listen(client, 1));
  add_qp(client);
  REFUSED("second-qp", rdma_create_qp(client, NULL, &init));
  param.private_data = data, param.private_data_len = 200;
  REFUSED("too-much-data", rdma_connect(client, &param));
  param.private_data_len = 0, param.responder_resources = 200;
  REFUSED("too-many-reads", rdma_connect(client, &param));
  param.responder_resources = 1;
  REFUSED("nobody-listens", !rdma_connect(client, &param));
  take(RDMA_CM_EVENT_REJECTED);
  drop(client);
  client = new_id(), resolve(client, 7471), add_qp(client);
  REFUSED("rejected", !rdma_connect(client, &param));
  struct rdma_cm_event* asked = event_of(RDMA_CM_EVENT_CONNECT_REQUEST);
  struct rdma_cm_id* peer = asked->id;
  NEED(!rdma_reject(peer, NULL, 0) && !rdma_ack_cm_event(asked));
  take(RDMA_CM_EVENT_REJECTED);
  drop(peer), drop(client);
  client = new_id(), resolve(client, 7471);
  REFUSED("nothing-to-connect", rdma_connect(client, NULL));
  drop(client), drop(server);
  fprintf(stderr, "== end\n");
}

int main(int argc, char** argv) {
  int n = 0;
  union ibv_gid gid;
  struct ibv_context** devices = rdma_get_devices(&n);
  NEED(n > 0 && !ibv_query_gid(devices[0], 1, 1, &gid) && (channel = rdma_create_event_channel()));
  own.sin_family = AF_INET;
  memcpy(&own.sin_addr, gid.raw + 12, 4);
  argc > 1 && !strcmp(argv[1], "right") ? right() : wrong();
  rdma_destroy_event_channel(channel);
  return 0;
}
