// RC connections whose peer falls silent, and how long that takes to be noticed.
//
//   netns_silence serve DEVICE GID_INDEX PORT
//     Takes one RC connection and receives until it is ended.
//   netns_silence watch GID_INDEX TIMEOUT RETRY_COUNT POLL|SLEEP DEVICE ADDRESS PORT [DEVICE ADDRESS PORT]
//     Connects to the first server, and to a second one if given: the bystander. Sends to both without a pause, and
//     says "flowing". When the first connection fails: "status S after MS ms, state T, flushed N", the time counted
//     from the last good completion; then "bystander N" with the messages that it took meanwhile and for 100 ms more.
//
// Exit 0 when all that came; 1 with a reason else.
#include <infiniband/verbs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int kReceives = 512;
constexpr int kInFlight = 8;
constexpr uint32_t kBytes = 64;
constexpr uint64_t kLimitNs = 60'000'000'000;
constexpr uint64_t kAfterNs = 100'000'000;

[[noreturn]] void fail(const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
void need(bool is_right, const char* what) {
  if (!is_right) {
    fail(what);
  }
}
uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

/// What the two ends tell each other over TCP.
struct Hello {
  uint32_t qpn = 0;
  uint32_t psn = 0;
  ibv_gid gid{};
};

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_mr* memory = nullptr;
  ibv_gid gid{};
  uint8_t gid_index = 0;
  std::array<char, kBytes> bytes{};

  Device(const char* name, uint8_t index) : gid_index(index) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; i < count; ++i) {
      if (std::strcmp(ibv_get_device_name(list[i]), name) == 0) {
        context = ibv_open_device(list[i]);
      }
    }
    ibv_free_device_list(list);
    need(context != nullptr, name);
    pd = ibv_alloc_pd(context);
    memory = ibv_reg_mr(pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    need(memory != nullptr && ibv_query_gid(context, 1, index, &gid) == 0, "device");
  }
};

struct Peer {
  Device& device;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  int in_flight = 0;
  uint64_t done = 0;
  uint64_t last_ns = 0;

  Peer(Device& on, bool sleeps) : device(on) {
    channel = sleeps ? ibv_create_comp_channel(on.context) : nullptr;
    cq = ibv_create_cq(on.context, kReceives, nullptr, channel, 0);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {kInFlight, kReceives, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    qp = ibv_create_qp(on.pd, &init);
    need(qp != nullptr, "queue pair");
  }
  void receive() {
    ibv_sge piece{reinterpret_cast<uint64_t>(device.bytes.data()), kBytes, device.memory->lkey};
    ibv_recv_wr request{0, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    need(ibv_post_recv(qp, &request, &bad) == 0, "receive");
  }
  void send() {
    ibv_sge piece{reinterpret_cast<uint64_t>(device.bytes.data()), kBytes, device.memory->lkey};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    need(ibv_post_send(qp, &request, &bad) == 0, "send");
    ++in_flight;
  }
  /// Both ends say what they are over `stream`, and the queue pair becomes ready.
  void connect(int stream, uint8_t timeout, uint8_t retry_count) {
    const Hello mine{qp->qp_num, 0x1234, device.gid};
    Hello theirs;
    need(write(stream, &mine, sizeof mine) == sizeof mine &&
             recv(stream, &theirs, sizeof theirs, MSG_WAITALL) == sizeof theirs,
         "greeting");
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    need(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    for (int i = 0; i < kReceives; ++i) {
      receive();
    }
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_1024;
    to.dest_qp_num = theirs.qpn;
    to.rq_psn = theirs.psn;
    to.min_rnr_timer = 1;
    to.ah_attr.is_global = 1;
    to.ah_attr.grh = {theirs.gid, 0, device.gid_index, 64, 0};
    to.ah_attr.port_num = 1;
    need(ibv_modify_qp(qp, &to,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    to.qp_state = IBV_QPS_RTS;
    to.sq_psn = mine.psn;
    to.timeout = timeout;
    to.retry_cnt = retry_count;
    to.rnr_retry = 7;
    need(ibv_modify_qp(qp, &to,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
    // A message to a queue pair that can't receive yet is lost, and who tries once only fails by that.
    char is_ready = 1;
    need(write(stream, &is_ready, 1) == 1 && read(stream, &is_ready, 1) == 1, "readiness");
    last_ns = now_ns();
  }
};

int resolve(const char* address, const char* port, bool listens) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = listens ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  need(getaddrinfo(address, port, &hints, &found) == 0, "address");
  const int stream = socket(found->ai_family, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(stream, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  need((listens ? bind : ::connect)(stream, found->ai_addr, found->ai_addrlen) == 0, "TCP");
  freeaddrinfo(found);
  return stream;
}

int serve(Device& device, const char* port) {
  Peer peer(device, false);
  const int listener = resolve(nullptr, port, true);
  need(listen(listener, 1) == 0, "listen");
  peer.connect(accept(listener, nullptr, nullptr), 14, 7);
  for (;;) {
    ibv_wc done{};
    if (ibv_poll_cq(peer.cq, 1, &done) == 1) {
      need(done.status == IBV_WC_SUCCESS, ibv_wc_status_str(done.status));
      peer.receive();
    }
  }
}

/// Fills up, takes what is complete. The status that is not success, or success.
ibv_wc_status turn(Peer& peer) {
  while (peer.in_flight < kInFlight) {
    peer.send();
  }
  ibv_wc done{};
  while (ibv_poll_cq(peer.cq, 1, &done) == 1) {
    --peer.in_flight;
    if (done.status != IBV_WC_SUCCESS) {
      return done.status;
    }
    ++peer.done;
    peer.last_ns = now_ns();
  }
  return IBV_WC_SUCCESS;
}

/// Waits in the kernel for the next completion of a peer that has a channel. Then as turn().
ibv_wc_status rest(Peer& peer) {
  if (peer.channel == nullptr) {
    return IBV_WC_SUCCESS;
  }
  need(ibv_req_notify_cq(peer.cq, 0) == 0, "notify");
  const uint64_t before = peer.done;
  const ibv_wc_status status = turn(peer);
  if (status == IBV_WC_SUCCESS && peer.done == before) {
    ibv_cq* which = nullptr;
    void* context = nullptr;
    need(ibv_get_cq_event(peer.channel, &which, &context) == 0, "event");
    ibv_ack_cq_events(which, 1);
  }
  return status;
}

int watch(uint8_t gid_index, uint8_t timeout, uint8_t retry_count, bool sleeps, char** peers, int count) {
  Device device(peers[0], gid_index);
  Peer lost(device, sleeps);
  lost.connect(resolve(peers[1], peers[2], false), timeout, retry_count);
  std::optional<Device> other_device;
  std::vector<Peer> others;
  if (count == 6) {
    other_device.emplace(peers[3], gid_index);
    // Patient: what was on its way through the socket of the process that is killed next is lost to it, too.
    others.emplace_back(*other_device, false).connect(resolve(peers[4], peers[5], false), 14, 7);
  }
  const uint64_t begin = now_ns();
  bool is_announced = false;
  ibv_wc_status status = IBV_WC_SUCCESS;
  while ((status = turn(lost)) == IBV_WC_SUCCESS && (status = rest(lost)) == IBV_WC_SUCCESS) {
    for (Peer& other : others) {
      need(turn(other) == IBV_WC_SUCCESS, "bystander");
    }
    if (!is_announced && lost.done > 100 && (others.empty() || others[0].done > 100)) {
      is_announced = true;
      std::printf("flowing\n");
      std::fflush(stdout);
    }
    need(now_ns() < begin + kLimitNs, "nothing failed in time");
  }
  const uint64_t failed_ns = now_ns();
  const uint64_t bystander_then = others.empty() ? 0 : others[0].done;
  int flushed = 0;
  ibv_wc done{};
  while (lost.in_flight > 0 && now_ns() < failed_ns + kLimitNs) {
    if (ibv_poll_cq(lost.cq, 1, &done) == 1) {
      --lost.in_flight;
      flushed += done.status == IBV_WC_WR_FLUSH_ERR ? 1 : 0;
    }
  }
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  need(ibv_query_qp(lost.qp, &attributes, IBV_QP_STATE, &init) == 0, "query");
  std::printf("status %d after %.1f ms, state %d, flushed %d\n", static_cast<int>(status),
              static_cast<double>(failed_ns - lost.last_ns) / 1e6, static_cast<int>(attributes.qp_state), flushed);
  while (!others.empty() && now_ns() < failed_ns + kAfterNs) {
    need(turn(others[0]) == IBV_WC_SUCCESS, "bystander");
  }
  if (!others.empty()) {
    std::printf("bystander %llu\n", static_cast<unsigned long long>(others[0].done - bystander_then));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return static_cast<uint8_t>(std::strtoul(argv[i], nullptr, 10)); };
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "serve" && argc == 5) {
    Device device(argv[2], number(3));
    return serve(device, argv[4]);
  }
  if (role == "watch" && (argc == 9 || argc == 12)) {
    return watch(number(2), number(3), number(4), std::strcmp(argv[5], "SLEEP") == 0, argv + 6, argc - 6);
  }
  std::fprintf(stderr,
               "usage: netns_silence serve DEVICE GID PORT | watch GID TIMEOUT RETRIES POLL|SLEEP "
               "DEVICE ADDRESS PORT [DEVICE ADDRESS PORT]\n");
  return 2;
}
