// One end of many connections through rdma_cm, for tests that end it, or the other one:
//
//   netns_deaths serve|call ADDRESS PORT WAY COUNT
//
// WAY is what it does on its connections: "idle" nothing, "receive" takes what comes, "send" sends all the time. Says
// "listening" (serve), "established COUNT", and when each of them has ended by DISCONNECTED with status 0, was
// disconnected, and all of its work requests have come back: "over COUNT flushed N at T", T in seconds of
// CLOCK_MONOTONIC. Exit 1 with a reason when something else happens. Takes lines: "fork" makes a child that lives on
// until its input ends, and says its number; "exec" becomes `cat`, with "became" before it; "count" says how many
// messages have come and gone.
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace {

constexpr int kResolveLimitMs = 2000;
constexpr uint32_t kReceives = 8;
constexpr uint32_t kSends = 4;
constexpr size_t kBytes = 256;

[[noreturn]] void fail(const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
void need(bool is_right, const char* what) {
  if (!is_right) {
    fail(what);
  }
}
double now_s() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

enum class Way : uint8_t { idle, receive, send };

struct Connection {
  rdma_cm_id* id = nullptr;
  ibv_mr* region = nullptr;
  uint32_t posted = 0;  // and not come back
  bool is_over = false;
  alignas(64) std::array<std::byte, kBytes*(kReceives + kSends)> memory{};
};

class End {
 public:
  End(Way way, size_t count) : way_(way), count_(count) { setvbuf(stdout, nullptr, _IOLBF, 0); }

  void listen(sockaddr* address) {
    rdma_cm_id* listener = nullptr;
    need(rdma_create_id(channel_, &listener, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    need(rdma_bind_addr(listener, address) == 0 && rdma_listen(listener, 1024) == 0, "listen");
    std::puts("listening");
  }
  void call(sockaddr* address) {
    for (size_t i = 0; i < count_; ++i) {
      rdma_cm_id* id = nullptr;
      need(rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
      need(rdma_resolve_addr(id, nullptr, address, kResolveLimitMs) == 0, "rdma_resolve_addr");
    }
  }
  void run() {
    while (ended_ < count_) {
      pollfd waiting[] = {{channel_->fd, POLLIN, 0}, {hears_ ? STDIN_FILENO : -1, POLLIN, 0}};
      const bool is_busy = way_ != Way::idle && established_ == count_;
      need(poll(waiting, 2, is_busy ? 0 : -1) >= 0, "poll");
      if (waiting[0].revents != 0) {
        take_event();
      }
      if (waiting[1].revents != 0) {
        obey();
      }
      for (auto& [id, connection] : connections_) {
        if (is_busy && !connection->is_over) {
          work(*connection);
        }
      }
    }
    std::printf("over %zu flushed %llu at %.6f\n", count_, static_cast<unsigned long long>(flushed_), now_s());
  }

 private:
  void take_event() {
    rdma_cm_event* event = nullptr;
    need(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
    rdma_cm_id* id = event->id;
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    rdma_ack_cm_event(event);
    rdma_conn_param param{};
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    switch (type) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        need(rdma_resolve_route(id, kResolveLimitMs) == 0, "rdma_resolve_route");
        return;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        prepare(id);
        need(rdma_connect(id, &param) == 0, "rdma_connect");
        return;
      case RDMA_CM_EVENT_CONNECT_REQUEST:
        prepare(id);
        need(rdma_accept(id, &param) == 0, "rdma_accept");
        return;
      case RDMA_CM_EVENT_ESTABLISHED:
        if (++established_ == count_) {
          std::printf("established %zu\n", count_);
        }
        return;
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return;
      default:
        break;
    }
    if (type != RDMA_CM_EVENT_DISCONNECTED || status != 0) {
      std::printf("%s %d\n", rdma_event_str(type), status);
      std::exit(1);
    }
    need(rdma_disconnect(id) == 0, "rdma_disconnect");
    Connection& connection = *connections_.at(id);
    connection.is_over = true;
    while (connection.posted > 0) {
      collect(connection);
    }
    ++ended_;
  }

  void prepare(rdma_cm_id* id) {
    ibv_qp_init_attr init{};
    init.cap = {kSends, kReceives, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    need(rdma_create_qp(id, nullptr, &init) == 0, "rdma_create_qp");
    auto& connection = connections_[id] = std::make_unique<Connection>();
    connection->id = id;
    connection->region = rdma_reg_msgs(id, connection->memory.data(), connection->memory.size());
    need(connection->region != nullptr, "rdma_reg_msgs");
    for (uint32_t i = 0; i < kReceives; ++i) {
      receive(*connection, i);
    }
  }
  static std::byte* piece(Connection& connection, uint64_t number) {
    return connection.memory.data() + number * kBytes;
  }
  static void receive(Connection& connection, uint64_t number) {
    need(rdma_post_recv(connection.id, reinterpret_cast<void*>(number), piece(connection, number), kBytes,
                        connection.region) == 0,
         "rdma_post_recv");
    ++connection.posted;
  }
  void work(Connection& connection) {
    collect(connection);
    while (way_ == Way::send && connection.posted < kReceives + kSends && !has_failed_) {
      need(rdma_post_send(connection.id, reinterpret_cast<void*>(uint64_t{kReceives}), piece(connection, kReceives),
                          kBytes, connection.region, 0) == 0,
           "rdma_post_send");
      ++connection.posted;
    }
  }
  void collect(Connection& connection) {
    for (ibv_cq* queue : {connection.id->send_cq, connection.id->recv_cq}) {
      std::array<ibv_wc, 16> done;
      const int got = ibv_poll_cq(queue, static_cast<int>(done.size()), done.data());
      need(got >= 0, "ibv_poll_cq");
      for (int i = 0; i < got; ++i) {
        const ibv_wc& one = done[static_cast<size_t>(i)];
        --connection.posted;
        if (one.status == IBV_WC_SUCCESS) {
          ++messages_;
          if (one.opcode == IBV_WC_RECV && !connection.is_over) {
            receive(connection, one.wr_id);
          }
          continue;
        }
        has_failed_ = true;
        flushed_ += one.status == IBV_WC_WR_FLUSH_ERR ? 1U : 0U;
      }
    }
  }

  void obey() {
    std::array<char, 64> line{};
    if (std::fgets(line.data(), line.size(), stdin) == nullptr) {
      hears_ = false;
      return;
    }
    const std::string word = line.data();
    if (word == "fork\n") {
      const pid_t child = fork();
      if (child == 0) {
        while (std::getchar() != EOF) {
        }
        _exit(0);
      }
      std::printf("child %d\n", child);
      hears_ = false;
    } else if (word == "exec\n") {
      std::puts("became");
      execlp("cat", "cat", static_cast<char*>(nullptr));
      fail("execlp");
    } else if (word == "count\n") {
      std::printf("messages %llu\n", static_cast<unsigned long long>(messages_));
    }
  }

  const Way way_;
  const size_t count_;
  rdma_event_channel* const channel_ = rdma_create_event_channel();
  std::map<rdma_cm_id*, std::unique_ptr<Connection>> connections_;
  size_t established_ = 0;
  size_t ended_ = 0;
  uint64_t flushed_ = 0;
  uint64_t messages_ = 0;
  bool has_failed_ = false;
  bool hears_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc == 6 ? argv[1] : "";
  if (role != "serve" && role != "call") {
    std::fprintf(stderr, "usage: netns_deaths serve|call ADDRESS PORT idle|receive|send COUNT\n");
    return 2;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  need(getaddrinfo(argv[2], argv[3], &hints, &found) == 0, argv[2]);
  const std::string way = argv[4];
  End end(way == "send" ? Way::send : way == "receive" ? Way::receive : Way::idle, std::strtoul(argv[5], nullptr, 10));
  if (role == "serve") {
    end.listen(found->ai_addr);
  } else {
    end.call(found->ai_addr);
  }
  end.run();
  return 0;
}
