// Identifiers, channels and options, without a device: nothing here leaves the process.

#include "rdmacm/objects.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "rdmacm/connection_manager.h"
#include "rdmacm/explanations.h"

namespace ringbolt::rdmacm {
namespace {

std::unique_ptr<QueuedEvent> numbered_event(int number) {
  auto event = std::make_unique<QueuedEvent>();
  event->c.status = number;
  return event;
}

/// A channel, and what it holds.
class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() : channel(Channel::of(rdma_create_event_channel())) {}
  ~ChannelTest() override { rdma_destroy_event_channel(&channel.c); }
  bool is_readable() const {
    pollfd waiting{channel.c.fd, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }
  ConnectionManager& manager = ConnectionManager::get();
  Channel& channel;
};

TEST_F(ChannelTest, is_readable_exactly_while_an_event_waits) {
  const base::LockGuard guard(manager.mutex());
  EXPECT_FALSE(is_readable());
  for (int number = 0; number < 3; ++number) {
    channel.push(numbered_event(number));
  }
  for (int number = 0; number < 3; ++number) {
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(channel.pop()->c.status, number);
  }
  EXPECT_FALSE(is_readable());
}

TEST_F(ChannelTest, gives_chosen_events_out_and_keeps_the_order_of_all) {
  const base::LockGuard guard(manager.mutex());
  for (unsigned chosen = 0; chosen < 32; ++chosen) {  // each choice of five
    for (int number = 0; number < 5; ++number) {
      channel.push(numbered_event(number));
    }
    EventQueue taken = channel.take_if(
        [&](const QueuedEvent& event) { return (chosen >> static_cast<unsigned>(event.c.status) & 1U) != 0; });
    for (int number = 0; number < 5; ++number) {
      const bool is_taken = (chosen >> static_cast<unsigned>(number) & 1U) != 0;
      ASSERT_FALSE((is_taken ? taken : channel.queue).is_empty());
      EXPECT_EQ((is_taken ? taken.pop() : channel.pop())->c.status, number);
    }
    EXPECT_TRUE(taken.is_empty());
    EXPECT_TRUE(channel.queue.is_empty());
    EXPECT_FALSE(is_readable()) << "counted down by those that were taken out";
  }
}

TEST_F(ChannelTest, that_is_closed_takes_nothing_more) {
  const base::LockGuard guard(manager.mutex());
  channel.is_closed = true;
  channel.push(numbered_event(1));
  EXPECT_TRUE(channel.queue.is_empty());
  EXPECT_FALSE(is_readable());
  channel.is_closed = false;
}

TEST(EventQueueTest, an_emptied_one_is_as_good_as_new) {
  EventQueue queue;
  for (int round = 0; round < 3; ++round) {
    queue.push(numbered_event(1));
    queue.push(numbered_event(2));
    EventQueue moved(std::move(queue));
    EXPECT_EQ(moved.pop()->c.status, 1);
    EXPECT_EQ(moved.pop()->c.status, 2);
    EXPECT_TRUE(moved.is_empty());
    moved.push(numbered_event(3));
    EXPECT_EQ(moved.first()->c.status, 3);
  }
}

/// An identifier on a channel of its own.
class IdTest : public ChannelTest {
 protected:
  IdTest() { EXPECT_EQ(rdma_create_id(&channel.c, &c, this, RDMA_PS_TCP), 0); }
  ~IdTest() override { EXPECT_EQ(rdma_destroy_id(c), 0); }
  template <class Value>
  int set(int name, Value value, size_t length = sizeof(Value), int level = RDMA_OPTION_ID) {
    errno = 0;
    return rdma_set_option(c, level, name, &value, length) == 0 ? 0 : errno;
  }
  rdma_cm_id* c = nullptr;
};

TEST_F(IdTest, options_have_one_length_and_their_bounds) {
  EXPECT_EQ(set(RDMA_OPTION_ID_TOS, uint8_t{0x60}), 0);
  EXPECT_EQ(set(RDMA_OPTION_ID_TOS, 0x60), EINVAL);
  EXPECT_EQ(set(RDMA_OPTION_ID_REUSEADDR, 1), 0);
  EXPECT_EQ(set(RDMA_OPTION_ID_REUSEADDR, uint8_t{1}), EINVAL);
  EXPECT_EQ(set(RDMA_OPTION_ID_REUSEADDR, 1, SIZE_MAX), EINVAL);
  EXPECT_EQ(set(RDMA_OPTION_ID_ACK_TIMEOUT, uint8_t{31}), 0);
  EXPECT_EQ(set(RDMA_OPTION_ID_ACK_TIMEOUT, uint8_t{32}), EINVAL) << "the field has five bits";
  EXPECT_EQ(set(99, 1), ENOSYS);
  EXPECT_EQ(set(RDMA_OPTION_ID_TOS, uint8_t{1}, 1, RDMA_OPTION_IB), ENOSYS);
  EXPECT_EQ(rdma_set_option(c, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, nullptr, sizeof(int)), -1);
  const base::LockGuard guard(manager.mutex());
  Id& id = Id::of(c);
  EXPECT_EQ(id.ack_timeout, 31) << "what was refused has changed nothing";
  EXPECT_TRUE(id.reuses_address);
  EXPECT_EQ(id.type_of_service, 0x60);
}

TEST_F(IdTest, without_an_address_is_refused) {
  EXPECT_EQ(rdma_resolve_addr(c, nullptr, nullptr, 0), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
}

TEST_F(IdTest, family_only_is_settled_with_the_address) {
  EXPECT_EQ(set(RDMA_OPTION_ID_AFONLY, 0), 0);
  Id& id = Id::of(c);
  {
    const base::LockGuard guard(manager.mutex());
    id.is_bound = true;
  }
  EXPECT_EQ(set(RDMA_OPTION_ID_AFONLY, 1), EINVAL);
  const base::LockGuard guard(manager.mutex());
  EXPECT_EQ(id.is_family_only, false);
  id.is_bound = false;
}

TEST_F(IdTest, port_spaces_choose_the_kind_of_queue_pair) {
  EXPECT_EQ(c->qp_type, IBV_QPT_RC);
  EXPECT_EQ(c->context, this);
  for (const auto& [space, type] :
       {std::pair{RDMA_PS_UDP, IBV_QPT_UD}, {RDMA_PS_IPOIB, IBV_QPT_UD}, {RDMA_PS_IB, IBV_QPT_RC}}) {
    rdma_cm_id* other = nullptr;
    ASSERT_EQ(rdma_create_id(&channel.c, &other, nullptr, space), 0);
    EXPECT_EQ(other->qp_type, type);
    EXPECT_EQ(rdma_destroy_id(other), 0);
  }
  rdma_cm_id* none = nullptr;
  EXPECT_EQ(rdma_create_id(&channel.c, &none, nullptr, static_cast<rdma_port_space>(0x1ff)), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(none, nullptr);
}

TEST_F(IdTest, refusals_are_errors_whether_anybody_explains_them_or_not) {
  const base::LockGuard guard(manager.mutex());
  EXPECT_EQ(wrong_phase("rdma_connect", Id::of(c), "resolved"), EINVAL);
  EXPECT_EQ(too_much_data("rdma_connect", 57, 56), EINVAL);
  EXPECT_EQ(result(0), 0);
  errno = 0;
  EXPECT_EQ(result(ENOMEM), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(EventNames, are_those_of_the_header_and_none_is_there_twice) {
  std::set<std::string> names;
  for (int event = RDMA_CM_EVENT_ADDR_RESOLVED; event <= RDMA_CM_EVENT_TIMEWAIT_EXIT; ++event) {
    const std::string name = rdma_event_str(static_cast<rdma_cm_event_type>(event));
    EXPECT_TRUE(name.starts_with("RDMA_CM_EVENT_")) << event;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
  for (const int odd : {-1, 1000}) {
    EXPECT_STREQ(rdma_event_str(static_cast<rdma_cm_event_type>(odd)), "UNKNOWN EVENT");
  }
}

}  // namespace
}  // namespace ringbolt::rdmacm
