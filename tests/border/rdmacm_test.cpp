// Every call of librdmacm that needs memory, with each piece of it refused in turn.
#include <gtest/gtest.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../rdmacm/support.h"
#include "failing_memory.h"

namespace ringbolt::border {
namespace {

using rdmacm_test::address;
using rdmacm_test::c;
using rdmacm_test::Channel;
using rdmacm_test::discard;
using rdmacm_test::listen;
using rdmacm_test::new_id;
using rdmacm_test::parameters;
using rdmacm_test::routed;

TEST(ConnectionBorder, channels_and_identifiers) {
  rdma_event_channel* channel = nullptr;
  survive(
      "rdma_create_event_channel",
      [&] {
        channel = rdma_create_event_channel();
        return error_of(channel);
      },
      [&] { rdma_destroy_event_channel(channel); });
  const Channel home;
  for (rdma_event_channel* where : {home.get(), static_cast<rdma_event_channel*>(nullptr)}) {
    rdma_cm_id* id = nullptr;
    survive(
        "rdma_create_id", [&] { return error_of(rdma_create_id(where, &id, nullptr, RDMA_PS_TCP)); },
        [&] { EXPECT_EQ(rdma_destroy_id(id), 0); });
    succeed(
        "rdma_destroy_id", [&] { ASSERT_EQ(rdma_create_id(where, &id, nullptr, RDMA_PS_TCP), 0); },
        [&] { return error_of(rdma_destroy_id(id)); });
  }
}

TEST(ConnectionBorder, devices_and_names) {
  ibv_context** devices = nullptr;
  survive(
      "rdma_get_devices",
      [&] {
        devices = rdma_get_devices(nullptr);
        return error_of(devices);
      },
      [&] { rdma_free_devices(devices); });
  rdma_addrinfo* info = nullptr;
  survive(
      "rdma_getaddrinfo",
      [&] {
        const int answer = rdma_getaddrinfo("127.0.0.1", "7471", nullptr, &info);
        return answer == EAI_MEMORY ? ENOMEM : error_of(answer);
      },
      [&] { rdma_freeaddrinfo(info); });
}

TEST(ConnectionBorder, passive_side) {
  const Channel channel;
  rdma_cm_id* id = nullptr;
  const auto renew = [&] {
    if (id != nullptr) {
      EXPECT_EQ(rdma_destroy_id(id), 0);
    }
    id = new_id(channel);
  };
  renew();
  sockaddr_in at = address();
  survive(
      "rdma_bind_addr", [&] { return error_of(rdma_bind_addr(id, c(at))); }, renew,
      [&] { EXPECT_EQ(rdma_get_src_port(id), 0); });
  renew();
  ASSERT_EQ(rdma_bind_addr(id, c(at)), 0);
  survive(
      "rdma_listen", [&] { return error_of(rdma_listen(id, 8)); },
      [&] {
        renew();
        EXPECT_EQ(rdma_bind_addr(id, c(at)), 0);
      });
  discard(id);
}

/// With words for the peer, which it keeps a copy of: the last piece of memory that it takes.
TEST(ConnectionBorder, endpoints) {
  const Channel passive;
  rdma_cm_id* const listener = listen(passive);
  sockaddr_in to = address(ntohs(rdma_get_src_port(listener)));
  char words[] = "hello";
  rdma_addrinfo info{};
  info.ai_port_space = RDMA_PS_TCP;
  info.ai_family = AF_INET;
  info.ai_qp_type = IBV_QPT_RC;
  info.ai_dst_addr = c(to);
  info.ai_dst_len = sizeof to;
  info.ai_connect = words;
  info.ai_connect_len = sizeof words;
  rdma_cm_id* id = nullptr;
  constexpr int kChannelsKept = 64;  // of those destroyed last, which would look like lost ones until they are so many
  for (int i = 0; i < kChannelsKept; ++i) {
    ASSERT_EQ(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), 0);
    ASSERT_EQ(rdma_destroy_id(std::exchange(id, nullptr)), 0);
  }
  survive(
      "rdma_create_ep",
      [&] {
        ibv_qp_init_attr attributes{};
        attributes.cap = {16, 16, 1, 1, 0};
        return error_of(rdma_create_ep(&id, &info, nullptr, &attributes));
      },
      [&] { rdma_destroy_ep(std::exchange(id, nullptr)); }, [&] { EXPECT_EQ(id, nullptr); });
  discard(listener);
}

TEST(ConnectionBorder, active_side) {
  const Channel passive;
  const Channel active;
  rdma_cm_id* const listener = listen(passive);
  sockaddr_in to = address(ntohs(rdma_get_src_port(listener)));
  rdma_cm_id* id = nullptr;
  const auto renew = [&] {
    if (id != nullptr) {
      discard(id);
    }
    id = new_id(active);
  };
  renew();
  survive(
      "rdma_resolve_addr", [&] { return error_of(rdma_resolve_addr(id, nullptr, c(to), 2000)); },
      [&] {
        active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
        renew();
      });
  renew();
  ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(to), 2000), 0);
  active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  const auto resolve = [&] {
    renew();
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, c(to), 2000), 0);
    active.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  };
  survive(
      "rdma_resolve_route", [&] { return error_of(rdma_resolve_route(id, 2000)); },
      [&] {
        active.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
        resolve();
      });
  discard(std::exchange(id, nullptr));
  id = routed(active, ntohs(rdma_get_src_port(listener)));
  survive(
      "rdma_create_qp",
      [&] {
        ibv_qp_init_attr attributes{};
        attributes.cap = {16, 16, 1, 1, 0};
        attributes.qp_type = IBV_QPT_RC;
        return error_of(rdma_create_qp(id, nullptr, &attributes));
      },
      [&] { rdma_destroy_qp(id); }, [&] { EXPECT_EQ(id->qp, nullptr); });
  discard(id);
  discard(listener);
}

/// A whole connection, with each request for memory of one of its calls refused in turn: the call is made once more
/// then.
class Conversation {
 public:
  /// `tight` is the call that runs short.
  Conversation(const char* tight, uint32_t nth) : tight_(tight), nth_(nth) {}

  bool has_struck() const { return has_struck_; }

  void hold() {
    rdma_cm_id* const listener = listen(passive_);
    rdma_cm_id* const client = routed(active_, ntohs(rdma_get_src_port(listener)));
    rdmacm_test::make_qp(client);
    rdma_conn_param asking = parameters();
    call("rdma_connect", [&] { return rdma_connect(client, &asking); });
    rdma_cm_event* const request = take("request", passive_);
    ASSERT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    rdma_cm_id* const server = request->id;
    ASSERT_EQ(rdma_ack_cm_event(request), 0);
    rdmacm_test::make_qp(server);
    rdma_conn_param answering = parameters();
    call("rdma_accept", [&] { return rdma_accept(server, &answering); });
    expect(RDMA_CM_EVENT_ESTABLISHED, take("established", active_));
    expect(RDMA_CM_EVENT_ESTABLISHED, take("established at the other end", passive_));
    call("rdma_disconnect", [&] { return rdma_disconnect(client); });
    expect(RDMA_CM_EVENT_DISCONNECTED, take("end", passive_));
    call("rdma_disconnect as an answer", [&] { return rdma_disconnect(server); });
    expect(RDMA_CM_EVENT_DISCONNECTED, take("other end", active_));
    discard(client);
    discard(server);
    discard(listener);
  }

 private:
  static void expect(rdma_cm_event_type wanted, rdma_cm_event* event) {
    ASSERT_NE(event, nullptr);
    EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(wanted));
    EXPECT_EQ(rdma_ack_cm_event(event), 0);
  }
  template <class Call>
  void call(const char* name, Call made) {
    int error = 0;
    if (std::strcmp(name, tight_) == 0) {
      const Shortage shortage(nth_);
      error = error_of(made());
      has_struck_ = shortage.has_struck();
    } else {
      error = error_of(made());
    }
    ASSERT_TRUE(error == 0 || (error == ENOMEM && has_struck_)) << name << " " << nth_ << ": " << std::strerror(error);
    if (error != 0) {
      ASSERT_EQ(error_of(made()), 0) << name << " for the second time, " << nth_ << ": " << std::strerror(errno);
    }
  }
  rdma_cm_event* take(const char* name, const Channel& channel) {
    EXPECT_TRUE(channel.is_readable(rdmacm_test::kLimitMs)) << name << ": no event, " << tight_ << " " << nth_;
    rdma_cm_event* event = nullptr;
    call(name, [&] { return rdma_get_cm_event(channel.get(), &event); });
    return event;
  }

  const char* tight_;
  uint32_t nth_;
  bool has_struck_ = false;
  Channel passive_;
  Channel active_;
};

class ConversationBorder : public testing::TestWithParam<const char*> {};

TEST_P(ConversationBorder, call_that_ran_short_is_made_again) {
  for (uint32_t nth = 1;; ++nth) {
    Conversation conversation(GetParam(), nth);
    ASSERT_NO_FATAL_FAILURE(conversation.hold()) << nth;
    if (HasFailure() || !conversation.has_struck()) {
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConversationBorder,
                         testing::Values("request", "established at the other end", "end", "other end"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace ringbolt::border
