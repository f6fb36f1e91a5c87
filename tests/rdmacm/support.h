// One process that talks to itself through rdma_cm, on the public headers alone.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringbolt::rdmacm_test {

inline constexpr int kLimitMs = 20'000;

/// An event, copied out and acknowledged.
struct Seen {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listener = nullptr;
  rdma_conn_param conn{};
  rdma_ud_param datagram{};
  std::string data;
};

/// An event channel. Waiting has a limit; what does not come fails the test.
class Channel {
 public:
  Channel() : channel_(rdma_create_event_channel()) { EXPECT_NE(channel_, nullptr); }
  ~Channel() { rdma_destroy_event_channel(channel_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  rdma_event_channel* get() const { return channel_; }
  bool is_readable(int timeout_ms = 0) const {
    pollfd descriptor{channel_->fd, POLLIN, 0};
    return poll(&descriptor, 1, timeout_ms) == 1;
  }
  /// Null after the limit.
  rdma_cm_event* take() const {
    rdma_cm_event* event = nullptr;
    return is_readable(kLimitMs) && rdma_get_cm_event(channel_, &event) == 0 ? event : nullptr;
  }
  Seen expect(rdma_cm_event_type wanted) const {
    const Seen seen = next();
    EXPECT_STREQ(rdma_event_str(seen.type), rdma_event_str(wanted));
    return seen;
  }
  Seen next() const {
    rdma_cm_event* event = take();
    Seen seen;
    if (event == nullptr) {
      ADD_FAILURE() << "no event";
      return seen;
    }
    seen = {event->event, event->status, event->id, event->listen_id, event->param.conn, event->param.ud, {}};
    if (event->param.conn.private_data != nullptr) {
      seen.data.assign(static_cast<const char*>(event->param.conn.private_data), event->param.conn.private_data_len);
    }
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
    return seen;
  }

 private:
  rdma_event_channel* channel_;
};

inline sockaddr_in address(uint16_t port = 0, uint32_t ip = INADDR_LOOPBACK) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  result.sin_addr.s_addr = htonl(ip);
  return result;
}
inline sockaddr* c(sockaddr_in& from) { return reinterpret_cast<sockaddr*>(&from); }

inline rdma_cm_id* new_id(const Channel& channel, rdma_port_space space = RDMA_PS_TCP, void* context = nullptr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, context, space), 0) << std::strerror(errno);
  return id;
}

/// A listener at a free port of 127.0.0.1.
inline rdma_cm_id* listen(const Channel& channel, rdma_port_space space = RDMA_PS_TCP, int backlog = 16,
                          void* context = nullptr) {
  rdma_cm_id* id = new_id(channel, space, context);
  sockaddr_in at = address();
  EXPECT_EQ(rdma_bind_addr(id, c(at)), 0) << std::strerror(errno);
  EXPECT_EQ(rdma_listen(id, backlog), 0) << std::strerror(errno);
  EXPECT_NE(rdma_get_src_port(id), 0);
  return id;
}

/// An identifier that only has to connect.
inline rdma_cm_id* routed(const Channel& channel, uint16_t port, rdma_port_space space = RDMA_PS_TCP) {
  rdma_cm_id* id = new_id(channel, space);
  sockaddr_in to = address(port);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, c(to), 2000), 0) << std::strerror(errno);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_EQ(rdma_resolve_route(id, 2000), 0) << std::strerror(errno);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

inline void make_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attributes{};
  attributes.cap = {16, 16, 1, 1, 0};
  attributes.qp_type = id->qp_type;
  ASSERT_EQ(rdma_create_qp(id, nullptr, &attributes), 0) << std::strerror(errno);
}

/// `data` must outlive the call that takes the parameters.
inline rdma_conn_param parameters(std::string_view data = {}) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

inline void discard(rdma_cm_id* id) {
  if (id->qp != nullptr) {
    rdma_destroy_qp(id);
  }
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

/// A listener and both ends of a connection with queue pairs.
struct Pair {
  Channel server_channel;
  Channel client_channel;
  rdma_cm_id* listener = nullptr;
  rdma_cm_id* server = nullptr;
  rdma_cm_id* client = nullptr;

  Pair() : listener(listen(server_channel)) { connect(); }
  ~Pair() {
    discard(client);
    discard(server);
    discard(listener);
  }
  void connect() {
    client = routed(client_channel, ntohs(rdma_get_src_port(listener)));
    make_qp(client);
    rdma_conn_param asking = parameters();
    ASSERT_EQ(rdma_connect(client, &asking), 0);
    server = server_channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    ASSERT_NE(server, nullptr);
    make_qp(server);
    rdma_conn_param answering = parameters();
    ASSERT_EQ(rdma_accept(server, &answering), 0) << std::strerror(errno);
    client_channel.expect(RDMA_CM_EVENT_ESTABLISHED);
    server_channel.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
};

}  // namespace ringbolt::rdmacm_test
