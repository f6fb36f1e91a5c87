/* A ping-pong over a datagram endpoint of libfabric's verbs provider, every byte checked.
 *
 * fabric_dgram DOMAIN FOLDER ping|pong: the two sides leave their addresses as files in FOLDER. fi_pingpong would do, but
 * it opens an event queue, which the verbs provider builds on rdma_cm; a datagram endpoint itself needs none. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kDepth = 8, kSlot = 8192, kRounds = 200, kNameBytes = 256, kLimitSeconds = 20 };

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *endpoint;
static struct fid_cq *queue;
static struct fid_av *addresses;
static struct fid_mr *memory;
static unsigned char *slots; /* kDepth to receive into, then one to send from */
static size_t send_prefix; /* room that the provider wants before the data */
static size_t receive_prefix;

static void require(long result, const char *what) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void before(double deadline, const char *what) {
  if (now() < deadline) return;
  fprintf(stderr, "%s: nothing within %d s\n", what, kLimitSeconds);
  exit(1);
}

static unsigned char pattern(char side, int round, size_t at) {
  return (unsigned char)((uint32_t)at * 2654435761u + (uint32_t)round * 40503u + (unsigned char)side);
}

static void open_endpoint(const char *name) {
  struct fi_info *hints = fi_allocinfo();
  struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .size = 4 * kDepth};
  struct fi_av_attr av = {.type = FI_AV_MAP};
  hints->caps = FI_MSG;
  hints->mode = FI_MSG_PREFIX | FI_CONTEXT;
  hints->ep_attr->type = FI_EP_DGRAM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->name = strdup(name);
  hints->fabric_attr->prov_name = strdup("verbs");
  require(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
  fi_freeinfo(hints);
  if ((info->tx_attr->mode & FI_MSG_PREFIX) != 0) send_prefix = info->ep_attr->msg_prefix_size;
  if ((info->rx_attr->mode & FI_MSG_PREFIX) != 0) receive_prefix = info->ep_attr->msg_prefix_size;
  require(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
  require(fi_domain(fabric, info, &domain, NULL), "fi_domain");
  require(fi_cq_open(domain, &cq, &queue, NULL), "fi_cq_open");
  require(fi_av_open(domain, &av, &addresses, NULL), "fi_av_open");
  require(fi_endpoint(domain, info, &endpoint, NULL), "fi_endpoint");
  require(fi_ep_bind(endpoint, &queue->fid, FI_SEND | FI_RECV), "fi_ep_bind queue");
  require(fi_ep_bind(endpoint, &addresses->fid, 0), "fi_ep_bind addresses");
  require(fi_enable(endpoint), "fi_enable");
  slots = calloc(kDepth + 1, kSlot);
  if (slots == NULL) require(-FI_ENOMEM, "calloc");
  require(fi_mr_reg(domain, slots, (kDepth + 1) * kSlot, FI_SEND | FI_RECV, 0, 1, 0, &memory, NULL), "fi_mr_reg");
}

static void post_receive(size_t slot) {
  require(fi_recv(endpoint, slots + slot * kSlot, kSlot, fi_mr_desc(memory), FI_ADDR_UNSPEC, slots + slot * kSlot), "fi_recv");
}

/* Addresses by file: written under another name first, so that half of one is never read. */
static fi_addr_t exchange(const char *folder, const char *mine, const char *theirs) {
  char name[kNameBytes];
  char path[512];
  char draft[512];
  size_t length = sizeof name;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  require(fi_getname(&endpoint->fid, name, &length), "fi_getname");
  snprintf(draft, sizeof draft, "%s/%s.draft", folder, mine);
  snprintf(path, sizeof path, "%s/%s", folder, mine);
  FILE *file = fopen(draft, "wb");
  if (file == NULL || fwrite(name, 1, length, file) != length || fclose(file) != 0 || rename(draft, path) != 0)
    require(-FI_EIO, draft);
  snprintf(path, sizeof path, "%s/%s", folder, theirs);
  const double deadline = now() + kLimitSeconds;
  while ((file = fopen(path, "rb")) == NULL) before(deadline, path);
  if (fread(name, 1, length, file) != length) require(-FI_EIO, path);
  fclose(file);
  if (fi_av_insert(addresses, name, 1, &peer, 0, NULL) != 1) require(-FI_EINVAL, "fi_av_insert");
  return peer;
}

static int has_sent = 1;

/* One completion: a message (its slot is returned) or the end of our send (NULL). */
static unsigned char *complete(const char *what, size_t *length) {
  struct fi_cq_msg_entry entry;
  const double deadline = now() + kLimitSeconds;
  long count;
  while ((count = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN) before(deadline, what);
  require(count, "fi_cq_read");
  *length = entry.len;
  if ((entry.flags & FI_SEND) != 0) {
    has_sent = 1;
    return NULL;
  }
  return entry.op_context;
}

static void send_message(fi_addr_t peer, char side, int round, size_t length) {
  unsigned char *out = slots + kDepth * kSlot;
  size_t unused;
  while (!has_sent) complete("the end of a send", &unused);
  for (size_t at = 0; at < length; ++at) out[send_prefix + at] = pattern(side, round, at);
  has_sent = 0;
  require(fi_send(endpoint, out, send_prefix + length, fi_mr_desc(memory), peer, out), "fi_send");
}

static void receive_message(char side, int round, size_t expected) {
  size_t length = 0;
  unsigned char *in = NULL;
  while (in == NULL) in = complete("a message", &length);
  if (length != receive_prefix + expected) {
    fprintf(stderr, "round %d: %zu bytes arrived, expected %zu\n", round, length, expected);
    exit(3);
  }
  for (size_t at = 0; at < expected; ++at) {
    if (in[receive_prefix + at] == pattern(side, round, at)) continue;
    fprintf(stderr, "round %d, %zu bytes: byte %zu is wrong\n", round, expected, at);
    exit(3);
  }
  post_receive((size_t)(in - slots) / kSlot);
}

int main(int argc, char **argv) {
  static const size_t kSizes[] = {1, 64, 1024, 4000};
  if (argc != 4) {
    fprintf(stderr, "usage: fabric_dgram DOMAIN FOLDER ping|pong\n");
    return 2;
  }
  const int is_ping = strcmp(argv[3], "ping") == 0;
  const char mine = is_ping ? 'i' : 'o';
  const char theirs = is_ping ? 'o' : 'i';
  open_endpoint(argv[1]);
  for (size_t slot = 0; slot < kDepth; ++slot) post_receive(slot);
  const fi_addr_t peer = exchange(argv[2], argv[3], is_ping ? "pong" : "ping");
  for (size_t index = 0; index < sizeof kSizes / sizeof kSizes[0]; ++index) {
    const double started = now();
    for (int round = 0; round < kRounds; ++round) {
      if (is_ping) send_message(peer, mine, round, kSizes[index]);
      receive_message(theirs, round, kSizes[index]);
      if (!is_ping) send_message(peer, mine, round, kSizes[index]);
    }
    if (is_ping) printf("%zu bytes %.2f us\n", kSizes[index], (now() - started) * 1e6 / (2 * kRounds));
  }
  size_t unused;
  while (!has_sent) complete("the last send", &unused);
  printf("every byte checked\n");
  fi_close(&endpoint->fid);
  fi_close(&memory->fid);
  fi_close(&addresses->fid);
  fi_close(&queue->fid);
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  fi_freeinfo(info);
  free(slots);
  return 0;
}
