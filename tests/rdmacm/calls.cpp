// Two ends of connections through rdma_cm, for tests that put them on different machines, and end one of them.
//
//   rdmacm_calls serve ADDRESS PORT       accepts whoever comes and lets go whoever goes; says "listening"
//   rdmacm_calls hold ADDRESS PORT        says "request" for each one that comes, and does nothing
//   rdmacm_calls call ADDRESS PORT SECONDS
//       connects and says each event: "NAME STATUS after MS ms". Ends after one that ends the connection; exit 1 when
//       none comes in time.
//   rdmacm_calls rate ADDRESS PORT RATE SECONDS OPEN
//       begins RATE connections a second, and ends the oldest whenever OPEN are open. Says what it has done and then
//       waits for a line: "ready" (one connection made and ended), "full" (OPEN are open, goes on without waiting), "N
//       connections in S s, H open", "closed". Exit 1 with a reason when something fails.
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>
#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

namespace {

constexpr int kEventLimitMs = 20'000;
constexpr int kResolveLimitMs = 2000;

[[noreturn]] void fail(const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}
void need(bool is_right, const char* what) {
  if (!is_right) {
    fail(what);
  }
}
void say(const char* text) {
  std::printf("%s\n", text);
  std::fflush(stdout);
}
uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(time.tv_nsec);
}

struct Target {
  addrinfo* found = nullptr;
  Target(const char* address, const char* port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST;
    need(getaddrinfo(address, port, &hints, &found) == 0, address);
  }
  sockaddr* get() const { return found->ai_addr; }
};

rdma_cm_id* new_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  need(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  return id;
}

void make_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr init{};
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  need(rdma_create_qp(id, nullptr, &init) == 0, "rdma_create_qp");
}

rdma_conn_param parameters() {
  rdma_conn_param param{};
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

void discard(rdma_cm_id* id) {
  if (id->qp != nullptr) {
    rdma_destroy_qp(id);
  }
  need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

/// The next event; ends the program when none comes in time.
rdma_cm_event* next(rdma_event_channel* channel, int limit_ms) {
  pollfd waiting{channel->fd, POLLIN, 0};
  rdma_cm_event* event = nullptr;
  errno = ETIMEDOUT;
  need(poll(&waiting, 1, limit_ms) == 1 && rdma_get_cm_event(channel, &event) == 0, "no event");
  return event;
}

void expect(rdma_event_channel* channel, rdma_cm_event_type wanted) {
  rdma_cm_event* event = next(channel, kEventLimitMs);
  if (event->event != wanted) {
    std::printf("%s (%d) where %s was wanted\n", rdma_event_str(event->event), event->status, rdma_event_str(wanted));
    std::exit(1);
  }
  rdma_ack_cm_event(event);
}

/// An identifier that only has to connect.
rdma_cm_id* routed(rdma_event_channel* channel, const Target& target) {
  rdma_cm_id* id = new_id(channel);
  need(rdma_resolve_addr(id, nullptr, target.get(), kResolveLimitMs) == 0, "rdma_resolve_addr");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  need(rdma_resolve_route(id, kResolveLimitMs) == 0, "rdma_resolve_route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  return id;
}

int listen_at(const Target& target, bool accepts) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = new_id(channel);
  need(rdma_bind_addr(listener, target.get()) == 0 && rdma_listen(listener, 1024) == 0, "listen");
  say("listening");
  for (;;) {
    rdma_cm_event* event = next(channel, -1);
    rdma_cm_id* id = event->id;
    const rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST && accepts) {
      make_queue_pair(id);
      rdma_conn_param param = parameters();
      need(rdma_accept(id, &param) == 0, "rdma_accept");
    } else if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      say("request");
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
      rdma_disconnect(id);
      discard(id);
    }
  }
}

int call(const Target& target, int limit_ms) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = routed(channel, target);
  rdma_conn_param param = parameters();
  const uint64_t begin = now_ns();
  need(rdma_connect(id, &param) == 0, "rdma_connect");
  for (bool is_over = false; !is_over;) {
    rdma_cm_event* event = next(channel, limit_ms);
    std::printf("%s %d after %.0f ms\n", rdma_event_str(event->event), event->status,
                static_cast<double>(now_ns() - begin) / 1e6);
    std::fflush(stdout);
    is_over = event->event != RDMA_CM_EVENT_ESTABLISHED;
    rdma_ack_cm_event(event);
  }
  discard(id);
  return 0;
}

/// Many connections under way at once, each a step further with each of its events.
struct Caller {
  const Target& target;
  rdma_event_channel* channel = rdma_create_event_channel();
  std::deque<rdma_cm_id*> open{};
  uint64_t made = 0;
  uint64_t ended = 0;

  void begin_one() {
    need(rdma_resolve_addr(new_id(channel), nullptr, target.get(), kResolveLimitMs) == 0, "rdma_resolve_addr");
  }
  void end_one() {
    rdma_cm_id* id = open.front();
    open.pop_front();
    need(rdma_disconnect(id) == 0, "rdma_disconnect");
  }
  /// Takes what comes until `until_ns` at the latest, one event at least if none is due before.
  void turn(uint64_t until_ns) {
    const uint64_t now = now_ns();
    pollfd waiting{channel->fd, POLLIN, 0};
    const timespec pause{static_cast<time_t>(until_ns > now ? (until_ns - now) / 1'000'000'000U : 0),
                         static_cast<long>(until_ns > now ? (until_ns - now) % 1'000'000'000U : 0)};
    if (ppoll(&waiting, 1, &pause, nullptr) == 1) {
      rdma_cm_event* event = next(channel, 0);
      rdma_cm_id* id = event->id;
      const rdma_cm_event_type type = event->event;
      const int status = event->status;
      rdma_ack_cm_event(event);
      take(id, type, status);
    }
  }

 private:
  void take(rdma_cm_id* id, rdma_cm_event_type type, int status) {
    rdma_conn_param param = parameters();
    switch (type) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        need(rdma_resolve_route(id, kResolveLimitMs) == 0, "rdma_resolve_route");
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        make_queue_pair(id);
        need(rdma_connect(id, &param) == 0, "rdma_connect");
        break;
      case RDMA_CM_EVENT_ESTABLISHED:
        open.push_back(id);
        ++made;
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        discard(id);
        ++ended;
        break;
      default:
        std::printf("%s %d\n", rdma_event_str(type), status);
        std::exit(1);
    }
  }
};

int keep_rate(const Target& target, uint64_t rate, uint64_t seconds, size_t at_once) {
  constexpr uint64_t kTickNs = 10'000'000;
  Caller caller{target};
  const auto drain = [&](uint64_t wanted) {
    while (caller.made < wanted) {
      caller.turn(now_ns() + kTickNs);
    }
    while (!caller.open.empty()) {
      caller.end_one();
    }
    while (caller.ended < wanted) {
      caller.turn(now_ns() + kTickNs);
    }
  };
  caller.begin_one();
  drain(1);
  say("ready");
  std::getchar();
  const uint64_t begin = now_ns();
  const uint64_t total = rate * seconds;
  uint64_t begun = 0;
  bool was_full = false;
  while (caller.made < total + 1) {
    const uint64_t due = begun < total ? begin + begun * 1'000'000'000U / rate : now_ns() + kTickNs;
    if (begun < total && now_ns() >= due) {
      caller.begin_one();
      ++begun;
    }
    caller.turn(due);
    while (caller.open.size() > at_once) {
      caller.end_one();
    }
    if (!was_full && caller.open.size() == at_once) {
      was_full = true;
      say("full");
    }
  }
  std::printf("%llu connections in %.2f s, %zu open\n", static_cast<unsigned long long>(total),
              static_cast<double>(now_ns() - begin) / 1e9, caller.open.size());
  std::fflush(stdout);
  std::getchar();
  drain(total + 1);
  say("closed");
  std::getchar();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::string role = argc > 3 ? argv[1] : "";
  const auto number = [&](int i) { return std::strtoul(argv[i], nullptr, 10); };
  if ((role == "serve" || role == "hold") && argc == 4) {
    return listen_at(Target(argv[2], argv[3]), role == "serve");
  }
  if (role == "call" && argc == 5) {
    return call(Target(argv[2], argv[3]), static_cast<int>(number(4) * 1000));
  }
  if (role == "rate" && argc == 7) {
    return keep_rate(Target(argv[2], argv[3]), number(4), number(5), number(6));
  }
  std::fprintf(stderr,
               "usage: rdmacm_calls serve|hold ADDRESS PORT | call ADDRESS PORT SECONDS | rate ADDRESS PORT "
               "RATE SECONDS OPEN\n");
  return 2;
}
