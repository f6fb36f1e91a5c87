// Management datagrams between two processes of a host, both of which are the test's.

#include "device/management.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "device/device_test_support.h"
#include "device/gid_table.h"
#include "link/rendezvous_test_support.h"
#include "wire/lifeline.h"

namespace ringbolt::device {
namespace {

constexpr uint32_t kMine = 3;
constexpr uint32_t kOther = 4;
constexpr uint32_t kNobodys = 9;
constexpr uint64_t kService = 0x0000000001062329;
constexpr uint64_t kTransaction = 0x1122334455667788;
constexpr wire::Address kFarAway = wire::ipv4_address(10, 77, 0, 2);

/// Communication ids have the slot of their process in front.
constexpr uint32_t id_of(uint32_t slot, uint32_t number) { return slot << 22U | number; }

class ManagementTest : public testing::Test {
 protected:
  ManagementTest() {
    port_ = list_ports().front();
    mine_ = make(kMine);
    other_ = make(kOther);
    mine_->open();
    other_->open();
    own_ = address_of(port_->known_gids[1]);
  }
  std::unique_ptr<Management> make(uint32_t slot) {
    return std::make_unique<Management>(port_->fabric, slot,
                                        [this, slot](uint32_t watched) { watched_.emplace_back(slot, watched); });
  }
  Mad mad(const wire::CmMessage& message) const {
    Mad mad;
    mad.source = mad.destination = own_;
    wire::emit(wire::CmMad{kTransaction, message}, mad.bytes);
    return mad;
  }
  int send(const wire::CmMessage& message) { return mine_->send(*port_, mad(message)); }
  void from_network(const wire::CmMessage& message, Management& to) {
    to.on_network_mad({kFarAway, own_}, 8, mad(message).bytes);
  }
  /// What waits there; of another kind of notice, or of none, nothing.
  static std::optional<Notice> receive(Management& at) {
    Notice notice;
    return at.receive(notice) ? std::optional(notice) : std::nullopt;
  }
  template <class Message>
  static std::optional<Message> message_in(const std::optional<Notice>& notice) {
    if (!notice || notice->kind != Notice::Kind::mad) {
      return std::nullopt;
    }
    const auto parsed = wire::parse_cm(notice->mad.bytes);
    const auto* message = parsed ? std::get_if<Message>(&parsed->message) : nullptr;
    EXPECT_TRUE(!message || parsed->transaction_id == kTransaction);
    return message == nullptr ? std::nullopt : std::optional(*message);
  }
  void serve(Management& at) {
    Service service;
    service.token = 1;
    service.service_id = kService;
    service.address = own_;
    service.is_ipv4 = service.is_family_only = true;
    const auto all_live = [](uint32_t) { return true; };
    ASSERT_EQ(at.services().bind(service, all_live), 0);
    ASSERT_EQ(at.services().listen(1, all_live), 0);
  }
  wire::CmReq request() const {
    wire::CmReq request;
    request.local_id = id_of(kMine, 5);
    request.service_id = kService;
    return request;
  }

  link::testing::TempFolder folder_;
  Variable runtime_{"RINGBOLT_RUNTIME_DIR", folder_.path()};
  std::shared_ptr<const Port> port_;
  std::vector<std::pair<uint32_t, uint32_t>> watched_;
  std::unique_ptr<Management> mine_;
  std::unique_ptr<Management> other_;
  wire::Address own_{};
};

using Watched = std::vector<std::pair<uint32_t, uint32_t>>;

TEST_F(ManagementTest, request_goes_to_who_listens_and_makes_each_hear_of_the_others_end) {
  serve(*other_);
  ASSERT_EQ(send(request()), 0);
  pollfd readable{other_->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 1);
  const auto notice = receive(*other_);
  const auto got = message_in<wire::CmReq>(notice);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->local_id, id_of(kMine, 5));
  EXPECT_EQ(notice->peer_slot, kMine);
  EXPECT_EQ(notice->mad.destination, own_);
  EXPECT_EQ(watched_, (Watched{{kMine, kOther}, {kOther, kMine}}));
  EXPECT_FALSE(receive(*mine_));
  EXPECT_FALSE(receive(*other_));
  EXPECT_EQ(poll(&readable, 1, 0), 0);
}

TEST_F(ManagementTest, own_service_is_reached_without_a_socket) {
  serve(*mine_);
  ASSERT_EQ(send(request()), 0);
  const auto notice = receive(*mine_);
  EXPECT_TRUE(message_in<wire::CmReq>(notice));
  EXPECT_EQ(notice->peer_slot, kMine);
  EXPECT_TRUE(watched_.empty());
}

// IBTA volume 1, table 108: 8 is "invalid service id".
TEST_F(ManagementTest, request_for_nobody_is_rejected_as_by_a_kernel) {
  ASSERT_EQ(send(request()), 0);
  const auto refusal = message_in<wire::CmRej>(receive(*mine_));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->remote_id, id_of(kMine, 5));
  EXPECT_EQ(refusal->reason, 8);
  EXPECT_EQ(refusal->answered, wire::CmAnswered::req);
}

TEST_F(ManagementTest, lookup_for_nobody_is_answered_with_unsupported) {
  wire::CmSidrReq lookup;
  lookup.request_id = id_of(kMine, 6);
  lookup.service_id = kService;
  ASSERT_EQ(send(lookup), 0);
  const auto answer = message_in<wire::CmSidrRep>(receive(*mine_));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->request_id, id_of(kMine, 6));
  EXPECT_EQ(answer->service_id, kService);
  EXPECT_EQ(answer->status, 1);
}

TEST_F(ManagementTest, end_of_a_connection_that_nobody_has_is_agreed_to) {
  ASSERT_EQ(send(wire::CmDreq{id_of(kMine, 5), id_of(kNobodys, 1), 0x77, {}}), 0);
  const auto answer = message_in<wire::CmDrep>(receive(*mine_));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->remote_id, id_of(kMine, 5));
  EXPECT_EQ(answer->local_id, id_of(kNobodys, 1));
}

TEST_F(ManagementTest, answers_and_what_is_no_message_of_connections_are_met_with_silence) {
  ASSERT_EQ(send(wire::CmDrep{id_of(kMine, 5), id_of(kNobodys, 1), {}}), 0);
  ASSERT_EQ(send(wire::CmRtu{id_of(kMine, 5), id_of(kNobodys, 1), {}}), 0);
  Mad strange = mad(request());
  strange.bytes[1] = std::byte{0x03};  // of another class: subnet administration
  ASSERT_EQ(mine_->send(*port_, strange), 0);
  wire::LifelineOffer offer{id_of(kMine, 5), id_of(kOther, 1), 9, 10, false};
  wire::emit(offer, strange.bytes);
  ASSERT_EQ(mine_->send(*port_, strange), 0);  // they are for networks alone
  EXPECT_FALSE(receive(*mine_));
  EXPECT_FALSE(receive(*other_));
}

TEST_F(ManagementTest, everything_else_belongs_to_the_slot_in_its_id) {
  wire::CmRep reply;
  reply.local_id = id_of(kMine, 5);
  reply.remote_id = id_of(kOther, 1);
  ASSERT_EQ(send(reply), 0);
  ASSERT_EQ(send(wire::CmRtu{id_of(kMine, 5), id_of(kOther, 1), {}}), 0);
  EXPECT_TRUE(message_in<wire::CmRep>(receive(*other_)));
  EXPECT_TRUE(message_in<wire::CmRtu>(receive(*other_)));
  EXPECT_EQ(watched_, (Watched{{kMine, kOther}, {kOther, kMine}}));  // once: an RTU begins nothing
}

TEST_F(ManagementTest, refusal_that_names_no_connection_is_told_to_all) {
  wire::CmRej refusal;
  refusal.reason = wire::kRejTimeout;
  ASSERT_EQ(send(refusal), 0);
  EXPECT_TRUE(message_in<wire::CmRej>(receive(*mine_)));
  EXPECT_TRUE(message_in<wire::CmRej>(receive(*other_)));
}

TEST_F(ManagementTest, nobody_is_reached_beyond_the_port) {
  Mad away = mad(request());
  away.destination = kFarAway;
  EXPECT_EQ(mine_->send(*port_, away), ENETUNREACH);
}

TEST_F(ManagementTest, end_of_a_peer_comes_behind_what_it_has_sent) {
  ASSERT_EQ(send(wire::CmRtu{id_of(kMine, 5), id_of(kOther, 1), {}}), 0);
  other_->on_peer_gone(kMine);
  EXPECT_TRUE(message_in<wire::CmRtu>(receive(*other_)));
  const auto notice = receive(*other_);
  ASSERT_TRUE(notice);
  EXPECT_EQ(notice->kind, Notice::Kind::peer_gone);
  EXPECT_EQ(notice->peer_slot, kMine);
  EXPECT_FALSE(receive(*other_));
}

TEST_F(ManagementTest, request_that_comes_between_two_listeners_waits_for_the_second) {
  serve(*other_);
  other_->services().unbind(1);
  ASSERT_EQ(send(request()), 0);
  EXPECT_EQ(mine_->unsent(), 1U);
  EXPECT_FALSE(message_in<wire::CmRej>(receive(*mine_)));
  serve(*other_);
  std::optional<Notice> notice;
  const uint64_t deadline = base::now_ns() + End::kPatienceNs;
  while (!notice && base::now_ns() < deadline) {
    EXPECT_FALSE(receive(*mine_));
    notice = receive(*other_);
  }
  EXPECT_TRUE(message_in<wire::CmReq>(notice));
  EXPECT_EQ(mine_->unsent(), 0U);
}

/// The program closes the context that has sent it: its port can't be touched any more.
TEST_F(ManagementTest, request_that_waits_outlives_the_port_that_has_sent_it) {
  void* const memory = mmap(nullptr, sizeof(Port), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const port = new (memory) Port(*port_);
  serve(*other_);
  other_->services().unbind(1);
  ASSERT_EQ(mine_->send(*port, mad(request())), 0);
  ASSERT_EQ(mine_->unsent(), 1U);
  port->~Port();
  ASSERT_EQ(mprotect(memory, sizeof(Port), PROT_NONE), 0);
  serve(*other_);
  std::optional<Notice> notice;
  for (const uint64_t deadline = base::now_ns() + End::kPatienceNs; !notice && base::now_ns() < deadline;) {
    EXPECT_FALSE(receive(*mine_));
    notice = receive(*other_);
  }
  EXPECT_TRUE(message_in<wire::CmReq>(notice));
  munmap(memory, sizeof(Port));
}

TEST_F(ManagementTest, process_without_a_connection_manager_receives_nothing) {
  const auto closed = make(5);
  EXPECT_EQ(closed->descriptor(), -1);
  EXPECT_FALSE(mine_->is_alive(5));
  EXPECT_TRUE(mine_->is_alive(kOther));
  closed->on_peer_gone(kOther);
  EXPECT_FALSE(receive(*closed));
  EXPECT_EQ(closed->send(*port_, mad(wire::CmRtu{id_of(5, 1), id_of(kOther, 1), {}})), 0);  // but it may send
  EXPECT_TRUE(message_in<wire::CmRtu>(receive(*other_)));
}

TEST_F(ManagementTest, process_that_has_left_is_nobody) {
  serve(*other_);
  other_->leave();
  EXPECT_FALSE(mine_->is_alive(kOther));
  EXPECT_FALSE(receive(*other_));
  ASSERT_EQ(send(request()), 0);
  EXPECT_TRUE(message_in<wire::CmRej>(receive(*mine_)));
}

// --- What comes over a network.

TEST_F(ManagementTest, datagram_of_a_network_is_forwarded_to_whose_it_is) {
  serve(*other_);
  from_network(request(), *mine_);
  const auto notice = receive(*other_);
  ASSERT_TRUE(message_in<wire::CmReq>(notice));
  EXPECT_EQ(notice->peer_slot, Notice::kNoSlot);
  EXPECT_EQ(notice->mad.source, kFarAway);
  EXPECT_EQ(notice->mad.traffic_class, 8);
  EXPECT_TRUE(watched_.empty());  // no process of this host has begun anything
  from_network(wire::CmRtu{id_of(kOther, 5), id_of(kMine, 1), {}}, *mine_);
  EXPECT_EQ(receive(*mine_)->peer_slot, Notice::kNoSlot);
}

TEST_F(ManagementTest, datagram_of_a_network_for_nobody_is_answered_there) {
  std::vector<Mad> sent;
  mine_->set_network_sender([&](const Port& port, const Mad& mad) {
    EXPECT_EQ(port.name, port_->name);
    sent.push_back(mad);
    return 0;
  });
  from_network(request(), *mine_);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].destination, kFarAway);
  EXPECT_EQ(sent[0].source, own_);
  const auto answer = wire::parse_cm(sent[0].bytes);
  ASSERT_TRUE(answer && std::holds_alternative<wire::CmRej>(answer->message));
  EXPECT_EQ(std::get<wire::CmRej>(answer->message).reason, 8);
  EXPECT_FALSE(receive(*mine_));
}

TEST_F(ManagementTest, offer_of_a_lifeline_goes_to_the_connections_process) {
  Mad offer;
  wire::emit(wire::LifelineOffer{id_of(kMine, 5), id_of(kOther, 1), 9, 10, false}, offer.bytes);
  mine_->on_network_mad({kFarAway, own_}, 0, offer.bytes);
  const auto notice = receive(*other_);
  ASSERT_TRUE(notice);
  EXPECT_TRUE(wire::parse_lifeline_offer(notice->mad.bytes));
}

}  // namespace
}  // namespace ringbolt::device
