#include "circuit/endpoint.h"

#include <gtest/gtest.h>

#include "circuit/endpoint_test_support.h"

namespace ringbolt::circuit {
namespace {

using namespace std::chrono_literals;
using test::Circuits;
using test::comes_true;
using test::pattern;

TEST_F(Circuits, carry_messages_of_all_sizes) {
  for (const bool has_checksums : {false, true}) {
    const auto a = make("a", has_checksums);
    const auto b = make("b", has_checksums);
    connect(*a, *b);
    ASSERT_NE(sender, nullptr);
    for (const unsigned size :
         {0U, 1U, 8U, 127U, 128U, 129U, 4096U, 65'535U, 65'536U, 65'537U, 1'000'000U, 5'000'000U}) {
      const std::vector<std::byte> bytes = pattern(size, 3);
      std::vector<std::byte> buffer(size + 9, std::byte{0xee});
      Receive* const received = receive({&buffer}, {0});
      Send* const sent = send(bytes);
      ASSERT_TRUE(comes_true([&] { return is_received(received) && (sent->is_free || is_sent(sent)); })) << size;
      EXPECT_EQ(received->parts[0].length, size);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
      EXPECT_EQ(buffer[size], std::byte{0xee});
      pop();
    }
    close();
  }
}

TEST_F(Circuits, wait_for_receives_and_keep_the_order) {
  const auto a = make("a");
  const auto b = make("b");
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  // More than the window holds, before anything is received.
  std::vector<std::vector<std::byte>> messages;
  std::vector<Send*> sends;
  for (unsigned i = 0; i < 100; ++i) {
    messages.push_back(pattern(1000 + i, i));
  }
  for (const auto& message : messages) {
    sends.push_back(send(message));
    ASSERT_NE(sends.back(), nullptr);
  }
  EXPECT_FALSE(is_sent(sends.back())) << "nobody has received anything";
  for (unsigned i = 0; i < 100; ++i) {
    std::vector<std::byte> buffer(2000);
    Receive* const received = receive({&buffer}, {0});
    ASSERT_TRUE(comes_true([&] {
      (void)is_sent(sends.back());
      return is_received(received);
    })) << i;
    EXPECT_EQ(received->parts[0].length, 1000 + i);
    EXPECT_EQ(buffer[7], messages[i][7]);
    pop();
  }
  close();
}

TEST_F(Circuits, place_members_of_a_group_by_their_tags) {
  const auto a = make("a");
  const auto b = make("b");
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  // The messages of tag 2 wait for the second group, while those of tag 1 are more than a window.
  std::vector<std::byte> big(3'000'000);
  std::vector<std::byte> small(100);
  const std::vector<std::byte> two = pattern(70'000, 2);
  const std::vector<std::byte> one = pattern(2'500'000, 1);
  Receive* const first = receive({&small, &big}, {3, 1});
  Send* const sent_two = send(two, 2);
  Send* const sent_one = send(one, 1);
  const std::vector<std::byte> three = pattern(50, 3);
  Send* const sent_three = send(three, 3);
  ASSERT_TRUE(comes_true([&] {
    (void)(sent_one->is_free || is_sent(sent_one));
    (void)(sent_two->is_free || is_sent(sent_two));
    (void)(sent_three->is_free || is_sent(sent_three));
    return is_received(first);
  }));
  EXPECT_EQ(first->parts[0].length, 50U);
  EXPECT_EQ(first->parts[1].length, one.size());
  EXPECT_TRUE(std::equal(one.begin(), one.end(), big.begin()));
  pop();
  std::vector<std::byte> last(80'000);
  Receive* const second = receive({&last}, {2});
  ASSERT_TRUE(comes_true([&] { return is_received(second); }));
  EXPECT_EQ(second->parts[0].length, two.size());
  EXPECT_TRUE(std::equal(two.begin(), two.end(), last.begin()));
  pop();
  close();
}

TEST_F(Circuits, a_message_longer_than_its_receive_fails_both_ends) {
  const auto a = make("a");
  const auto b = make("b");
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  const std::vector<std::byte> bytes = pattern(1000, 1);
  std::vector<std::byte> buffer(999);
  Receive* const received = receive({&buffer}, {0});
  send(bytes);
  EXPECT_TRUE(comes_true([&] {
    EXPECT_FALSE(is_received(received));
    return receiver->failure() == FailureKind::usage;
  }));
  EXPECT_NE(receiver->failure_text().find("1000"), std::string::npos) << receiver->failure_text();
  EXPECT_NE(receiver->failure_text().find("999"), std::string::npos) << receiver->failure_text();
  EXPECT_EQ(buffer[0], std::byte{}) << "nothing is written";
  EXPECT_TRUE(comes_true([&] { return sender->failure() == FailureKind::usage; }));
  close();
}

/// As of two ranks in one process that NCCL lets talk over the network.
TEST_F(Circuits, lead_to_this_very_process) {
  const auto a = make("a");
  for (const bool sender_ends : {true, false}) {
    connect(*a, *a);
    ASSERT_NE(sender, nullptr);
    for (const unsigned size : {0U, 8U, 65'537U, 5'000'000U}) {
      const std::vector<std::byte> bytes = pattern(size, 3);
      std::vector<std::byte> buffer(size + 1);
      Receive* const received = receive({&buffer}, {0});
      Send* const sent = send(bytes);
      ASSERT_TRUE(comes_true([&] { return is_received(received) && (sent->is_free || is_sent(sent)); })) << size;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
      pop();
    }
    if (sender_ends) {
      outgoing->close();
      std::vector<std::byte> buffer(1);
      Receive* const received = receive({&buffer}, {0});
      EXPECT_TRUE(comes_true([&] { return !is_received(received) && receiver->failure() != FailureKind::none; }));
    } else {
      incoming->close();
      EXPECT_TRUE(comes_true([&] { return sender->failure() != FailureKind::none; }));
    }
    close();
  }
}

TEST_F(Circuits, the_other_end_learns_of_a_close) {
  const auto a = make("a");
  const auto b = make("b");
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  // What has been sent before the close is received all the same.
  const std::vector<std::byte> bytes = pattern(300'000, 1);
  Send* const sent = send(bytes);
  ASSERT_TRUE(is_sent(sent));
  sender.reset();
  outgoing->close();
  std::vector<std::byte> buffer(300'000);
  Receive* const received = receive({&buffer}, {0});
  ASSERT_TRUE(comes_true([&] { return is_received(received); }));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
  pop();
  Receive* const next = receive({&buffer}, {0});
  EXPECT_TRUE(comes_true([&] {
    EXPECT_FALSE(is_received(next));
    return receiver->failure() == FailureKind::peer;
  }));
  EXPECT_NE(receiver->failure_text().find("closed"), std::string::npos) << receiver->failure_text();
  receiver.reset();
  incoming->close();
}

TEST_F(Circuits, fail_when_the_other_process_is_gone) {
  const auto a = make("a");
  auto b = make("b");
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  receiver.reset();
  incoming.reset();
  b.reset();
  EXPECT_TRUE(comes_true([&] { return sender->failure() == FailureKind::peer; }));
  sender.reset();
  outgoing->close();
}

TEST_F(Circuits, to_a_listener_that_is_gone_are_refused) {
  const auto a = make("a");
  const auto b = make("b");
  std::array<std::byte, kHandleBytes> handle{};
  b->close_listener(b->listen(handle));
  ASSERT_TRUE(comes_true([&] { return a->connect(handle)->is_refused(); }));
  EXPECT_NE(a->connect(handle)->failure_text().find("does not listen"), std::string::npos);
}

TEST_F(Circuits, of_other_groups_and_secrets_do_not_meet) {
  EndpointPlan plan;
  plan.verbs = "soft";
  plan.name = "stranger";
  plan.secret = "another one";
  const Endpoint stranger(plan, [](Level, const std::string&) {});
  const auto b = make("b");
  std::array<std::byte, kHandleBytes> handle{};
  (void)b->listen(handle);
  EXPECT_FALSE(comes_true([&] { return const_cast<Endpoint&>(stranger).connect(handle)->ready() != nullptr; }, 500ms));
}

TEST_F(Circuits, bytes_that_are_no_handle_lead_nowhere) {
  const auto a = make("a");
  std::array<std::byte, kHandleBytes> handle{};
  EXPECT_EQ(a->connect(handle), nullptr);
}

}  // namespace
}  // namespace ringbolt::circuit
