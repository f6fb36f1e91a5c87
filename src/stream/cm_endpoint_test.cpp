#include "stream/cm_endpoint.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

using testing::ElementsAre;

/// What the fake connection manager was asked, and the call that it refuses. Of the test that runs.
struct Asked {
  std::vector<std::string> calls;
  std::string refused;
  std::vector<uint16_t> ports;
  rdma_conn_param last{};
  int ids = 0;
};
Asked& asked() {
  static Asked only;
  return only;
}

int answer_to(const char* call) {
  asked().calls.emplace_back(call);
  errno = EHOSTUNREACH;
  return asked().refused == call ? -1 : 0;
}

verbs::CmCalls fake_calls() {
  verbs::CmCalls calls;
  calls.create_event_channel = [] { return new rdma_event_channel{::dup(STDIN_FILENO)}; };
  calls.destroy_event_channel = [](rdma_event_channel* channel) {
    ::close(channel->fd);
    delete channel;
  };
  calls.get_cm_event = [](rdma_event_channel*, rdma_cm_event**) { return -1; };
  calls.create_qp = [](rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*) { return -1; };
  calls.create_id = [](rdma_event_channel*, rdma_cm_id** id, void*, rdma_port_space) {
    if (answer_to("create_id") != 0) {
      return -1;
    }
    *id = new rdma_cm_id{};
    ++asked().ids;
    return 0;
  };
  calls.destroy_id = [](rdma_cm_id* id) {
    --asked().ids;
    delete id;
    return 0;
  };
  calls.migrate_id = [](rdma_cm_id*, rdma_event_channel*) { return answer_to("migrate_id"); };
  calls.resolve_addr = [](rdma_cm_id*, sockaddr*, sockaddr* to, int) {
    asked().ports.push_back(ntohs(reinterpret_cast<sockaddr_in*>(to)->sin_port));
    return answer_to("resolve_addr");
  };
  calls.resolve_route = [](rdma_cm_id*, int) { return answer_to("resolve_route"); };
  calls.connect = [](rdma_cm_id*, rdma_conn_param* wanted) {
    asked().last = *wanted;
    return answer_to("connect");
  };
  calls.accept = [](rdma_cm_id*, rdma_conn_param* wanted) {
    asked().last = *wanted;
    return answer_to("accept");
  };
  calls.notify = [](rdma_cm_id*, ibv_event_type event) {
    EXPECT_EQ(event, IBV_EVENT_COMM_EST);
    return answer_to("notify");
  };
  calls.disconnect = [](rdma_cm_id*) { return answer_to("disconnect"); };
  return calls;
}

/// No verb is called; but a library without functions is none.
verbs::Calls no_verbs() {
  verbs::Calls calls;
  calls.get_device_list = [](int*) -> ibv_device** { return nullptr; };
  calls.modify_qp = [](ibv_qp*, ibv_qp_attr*, int) { return 0; };
  calls.dereg_mr = [](ibv_mr*) { return 0; };
  return calls;
}

class CmEndpointTest : public testing::Test {
 protected:
  CmEndpointTest() { asked() = {}; }
  ~CmEndpointTest() override { EXPECT_EQ(asked().ids, 0) << "identifiers are left over"; }

  static Address with_port(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return Address(reinterpret_cast<const sockaddr&>(address));
  }
  verbs::OwnedCm<rdma_cm_id> request(uint16_t port) const {
    auto* id = new rdma_cm_id{};
    ++asked().ids;
    auto& from = reinterpret_cast<sockaddr_in&>(id->route.addr.dst_addr);
    from.sin_family = AF_INET;
    from.sin_port = htons(port);
    return {id, verbs::CloseCm(manager_)};
  }

  const verbs::ConnectionManager manager_{"a fake", fake_calls(), verbs::Library("a fake", no_verbs())};
};

TEST_F(CmEndpointTest, has_no_identifier_before_the_first_attempt) {
  const CmEndpoint cm(manager_);
  EXPECT_EQ(cm.id(), nullptr);
  EXPECT_FALSE(cm.has_more_targets());
  EXPECT_THAT(asked().calls, ElementsAre());
}

TEST_F(CmEndpointTest, takes_the_steps_of_a_client) {
  CmEndpoint cm(manager_);
  cm.set_targets({with_port(7)});
  EXPECT_EQ(cm.resolve_next_target(), "");
  EXPECT_NE(cm.id(), nullptr);
  EXPECT_EQ(cm.peer().port(), 7);
  EXPECT_EQ(cm.resolve_route(), "");
  EXPECT_EQ(cm.connect(), "");
  cm.disconnect();
  EXPECT_THAT(asked().calls, ElementsAre("create_id", "resolve_addr", "resolve_route", "connect", "disconnect"));
  EXPECT_EQ(asked().last.retry_count, 7);
  EXPECT_EQ(asked().last.rnr_retry_count, 7) << "for ever: a peer's program may be slow to post receives";
  EXPECT_EQ(asked().last.initiator_depth, 1);
  EXPECT_EQ(asked().last.responder_resources, 1);
}

TEST_F(CmEndpointTest, tries_each_target_with_an_identifier_of_its_own) {
  CmEndpoint cm(manager_);
  cm.set_targets({with_port(7), with_port(8)});
  EXPECT_EQ(cm.resolve_next_target(), "");
  ASSERT_TRUE(cm.has_more_targets());
  EXPECT_EQ(cm.resolve_next_target(), "");
  EXPECT_FALSE(cm.has_more_targets());
  EXPECT_EQ(cm.peer().port(), 8);
  EXPECT_THAT(asked().ports, ElementsAre(7, 8));
  EXPECT_EQ(asked().ids, 1) << "the first one's is gone";
}

TEST_F(CmEndpointTest, says_which_step_was_refused_and_why) {
  CmEndpoint cm(manager_);
  cm.set_targets({with_port(7), with_port(8)});
  asked().refused = "resolve_addr";
  EXPECT_THAT(cm.resolve_next_target(), testing::StartsWith("rdma_resolve_addr: "));
  asked().refused = "resolve_route";
  EXPECT_EQ(cm.resolve_next_target(), "");
  EXPECT_EQ(cm.resolve_route(), "rdma_resolve_route: " + base::reason_of(EHOSTUNREACH));
  asked().refused = "connect";
  EXPECT_THAT(cm.connect(), testing::StartsWith("rdma_connect: "));
}

TEST_F(CmEndpointTest, without_an_identifier_has_none_of_the_attempt_before) {
  CmEndpoint cm(manager_);
  cm.set_targets({with_port(7), with_port(8)});
  ASSERT_EQ(cm.resolve_next_target(), "");
  asked().refused = "create_id";
  EXPECT_THROW(cm.resolve_next_target(), base::Error);
  EXPECT_EQ(cm.id(), nullptr);
}

TEST_F(CmEndpointTest, takes_a_request_to_its_own_channel_and_accepts_it) {
  CmEndpoint cm(manager_);
  cm.adopt(request(4444));
  EXPECT_EQ(cm.peer().port(), 4444);
  cm.accept();
  EXPECT_THAT(asked().calls, ElementsAre("migrate_id", "accept"));
  EXPECT_EQ(asked().last.retry_count, 5);
  EXPECT_EQ(asked().last.rnr_retry_count, 7);
}

TEST_F(CmEndpointTest, gives_a_request_back_that_it_can_not_take) {
  CmEndpoint cm(manager_);
  asked().refused = "migrate_id";
  EXPECT_THROW(cm.adopt(request(4444)), base::Error);
  EXPECT_EQ(asked().ids, 0);
}

TEST_F(CmEndpointTest, names_the_peer_that_can_not_be_accepted) {
  CmEndpoint cm(manager_);
  cm.adopt(request(4444));
  asked().refused = "accept";
  try {
    cm.accept();
    ADD_FAILURE() << "it was accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), EHOSTUNREACH);
    EXPECT_THAT(error.what(), testing::HasSubstr("0.0.0.0:4444"));
  }
}

TEST_F(CmEndpointTest, tells_of_the_first_data_once) {
  CmEndpoint cm(manager_);
  cm.adopt(request(4444));
  cm.note_first_data();
  cm.note_first_data();
  EXPECT_THAT(asked().calls, ElementsAre("migrate_id", "notify"));
}

}  // namespace
}  // namespace ringbolt::stream
