// A server process that ends a connection before its client has looked at the answer: the client must hear of it.

#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

namespace ringbolt::rdmacm_test {
namespace {

constexpr int kRounds = 50;

/// A stream of small values from one process to the other.
template <class Value>
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void put(Value value) { EXPECT_EQ(write(ends_[1], &value, sizeof value), static_cast<ssize_t>(sizeof value)); }
  /// Zero after the limit: this process holds a writing end, too, so that a read would wait for ever.
  Value take() {
    pollfd descriptor{ends_[0], POLLIN, 0};
    Value value{};
    const bool has_come = poll(&descriptor, 1, kLimitMs) == 1;
    EXPECT_TRUE(has_come) << "nothing from the other process";
    if (has_come) {
      EXPECT_EQ(read(ends_[0], &value, sizeof value), static_cast<ssize_t>(sizeof value));
    }
    return value;
  }

 private:
  int ends_[2] = {-1, -1};
};

enum class Ending : uint8_t { disconnect_and_destroy, destroy, disconnect };

/// Serves in a child: accepts, ends at once, and says so.
class Server {
 public:
  explicit Server(Ending ending) : ending_(ending) {
    child_ = fork();
    if (child_ == 0) {
      serve();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    port = port_.take();
  }
  ~Server() {
    int status = -1;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void await_end() { ended_.take(); }
  void client_is_done() { done_.put(1); }

  uint16_t port = 0;

 private:
  void serve() {
    Channel channel;
    rdma_cm_id* listener = listen(channel);
    port_.put(ntohs(rdma_get_src_port(listener)));
    for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      rdma_cm_id* id = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
      make_qp(id);
      rdma_conn_param answer = parameters();
      EXPECT_EQ(rdma_accept(id, &answer), 0) << std::strerror(errno);
      if (ending_ != Ending::destroy) {
        EXPECT_EQ(rdma_disconnect(id), 0) << std::strerror(errno);
      }
      if (ending_ != Ending::disconnect) {
        discard(id);
      }
      ended_.put(1);
      if (ending_ == Ending::disconnect) {
        channel.expect(RDMA_CM_EVENT_ESTABLISHED);
        channel.expect(RDMA_CM_EVENT_DISCONNECTED);
        discard(id);
      }
      done_.take();
    }
    discard(listener);
  }

  Ending ending_;
  pid_t child_ = -1;
  Pipe<uint16_t> port_;
  Pipe<char> ended_;
  Pipe<char> done_;
};

bool is_flushed(const rdma_cm_id* id) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  return ibv_query_qp(id->qp, &attributes, IBV_QP_STATE, &init) == 0 && attributes.qp_state == IBV_QPS_ERR;
}

/// Connects again and again, and lets the server end before every second look at the events.
void call(Ending ending) {
  Server server(ending);
  Channel channel;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    rdma_cm_id* id = routed(channel, server.port);
    make_qp(id);
    rdma_conn_param asking = parameters();
    ASSERT_EQ(rdma_connect(id, &asking), 0);
    const bool is_slow = round % 2 == 0;
    if (is_slow) {
      server.await_end();
    }
    Seen seen = channel.next();
    const bool was_up = seen.type == RDMA_CM_EVENT_ESTABLISHED;
    if (was_up) {
      seen = channel.next();
    }
    if (ending == Ending::disconnect) {
      EXPECT_TRUE(was_up);
      EXPECT_STREQ(rdma_event_str(seen.type), rdma_event_str(RDMA_CM_EVENT_DISCONNECTED));
      EXPECT_EQ(rdma_disconnect(id), 0);
    } else {
      EXPECT_TRUE(seen.type == RDMA_CM_EVENT_REJECTED || seen.type == RDMA_CM_EVENT_CONNECT_ERROR ||
                  seen.type == RDMA_CM_EVENT_DISCONNECTED)
          << rdma_event_str(seen.type);
      EXPECT_TRUE(is_flushed(id) || seen.type == RDMA_CM_EVENT_DISCONNECTED);
      if (channel.is_readable()) {  // told once
        channel.expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
      }
    }
    discard(id);
    if (!is_slow) {
      server.await_end();
    }
    server.client_is_done();
  }
}

TEST(EarlyEnd, by_disconnecting_and_destroying_is_told) { call(Ending::disconnect_and_destroy); }
TEST(EarlyEnd, by_destroying_is_told) { call(Ending::destroy); }
TEST(EarlyEnd, by_disconnecting_is_told_once_the_client_has_looked) { call(Ending::disconnect); }

}  // namespace
}  // namespace ringbolt::rdmacm_test
