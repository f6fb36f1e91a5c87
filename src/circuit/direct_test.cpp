#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "circuit/endpoint_test_support.h"

// Messages that are written from the program's memory into the receiver's.
namespace ringbolt::circuit {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::pattern;

/// Asks both, whatever the first says: each end moves when it is asked.
bool both(bool one, bool other) { return one && other; }

class DirectCircuits : public test::Circuits {
 protected:
  void connect_both(bool has_checksums = false) {
    a = make("a", has_checksums, Way::direct);
    b = make("b", has_checksums, Way::direct);
    connect(*a, *b);
    ASSERT_NE(sender, nullptr);
  }
  const Registered* at_a(const std::vector<std::byte>& bytes) {
    return a->registrations()->add(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  const Registered* at_b(const std::vector<std::byte>& bytes) {
    return b->registrations()->add(const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  bool is_over(Send* one) { return one->is_free || is_sent(one); }
  uint64_t n_written() {
    const base::LockGuard guard(sender->lock);
    return sender->n_written();
  }
  /// One message, and what the receive says of its length.
  void carry(const std::vector<std::byte>& bytes, bool is_registered_there) {
    std::vector<std::byte> buffer(bytes.size() + 9, std::byte{0xee});
    Receive* const received = receive({&buffer}, {0}, {is_registered_there ? at_b(buffer) : nullptr});
    Send* const sent = send(bytes, 0, at_a(bytes));
    ASSERT_TRUE(comes_true([&] { return both(is_received(received), is_over(sent)); }))
        << bytes.size() << receiver->failure_text() << sender->failure_text();
    EXPECT_EQ(received->parts[0].length, bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin())) << bytes.size();
    EXPECT_EQ(buffer[bytes.size()], std::byte{0xee});
    pop();
  }

  std::unique_ptr<Endpoint> a;
  std::unique_ptr<Endpoint> b;
};

TEST_F(DirectCircuits, write_long_messages_and_copy_short_ones) {
  for (const bool has_checksums : {false, true}) {
    connect_both(has_checksums);
    uint64_t n_long = 0;
    for (const unsigned size : {0U, 8U, 65'535U, 65'536U, 65'537U, 262'144U, 262'145U, 1'000'000U, 9'000'001U}) {
      carry(pattern(size, 3), true);
      n_long += size >= 65'536 ? 1 : 0;
      EXPECT_EQ(n_written(), n_long) << size;
    }
    close();
  }
}

TEST_F(DirectCircuits, copy_where_a_buffer_is_not_registered) {
  connect_both();
  carry(pattern(300'000, 1), false);
  EXPECT_EQ(n_written(), 0U);
  carry(pattern(300'000, 2), true);
  EXPECT_EQ(n_written(), 1U);
  close();
}

TEST_F(DirectCircuits, one_end_that_wants_frames_is_enough) {
  a = make("a", false, Way::direct);
  b = make("b", false, Way::frames);
  connect(*a, *b);
  ASSERT_NE(sender, nullptr);
  EXPECT_EQ(b->registrations(), nullptr);
  carry(pattern(300'000, 1), false);
  EXPECT_EQ(n_written(), 0U);
  close();
}

TEST_F(DirectCircuits, do_not_wait_for_a_receive_for_long) {
  connect_both();
  const std::vector<std::byte> bytes = pattern(300'000, 1);
  Send* const sent = send(bytes, 0, at_a(bytes));
  ASSERT_TRUE(comes_true([&] { return is_over(sent); })) << "it is copied, and done";
  std::vector<std::byte> buffer(300'000);
  Receive* const received = receive({&buffer}, {0}, {at_b(buffer)});
  ASSERT_TRUE(comes_true([&] { return is_received(received); }));
  EXPECT_EQ(buffer, bytes);
  pop();
  carry(pattern(400'000, 2), true);
  EXPECT_EQ(n_written(), 1U) << "the next is written";
  close();
}

TEST_F(DirectCircuits, many_under_way_keep_their_order) {
  connect_both();
  constexpr unsigned kMessages = 60;
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::vector<std::byte>> buffers(kMessages);
  for (unsigned i = 0; i < kMessages; ++i) {
    messages.push_back(pattern(i % 3 == 0 ? 100 + i : 65'536 + 5000 * i, i));
    buffers[i].resize(messages[i].size() + 64);
  }
  std::vector<Receive*> receives;
  std::vector<Send*> sends;
  unsigned n_done = 0;
  ASSERT_TRUE(comes_true([&] {
    if (receives.size() < kMessages) {
      std::vector<std::byte>& buffer = buffers[receives.size()];
      if (Receive* const one = receives.size() - n_done < 8 ? receive({&buffer}, {0}, {at_b(buffer)}) : nullptr) {
        receives.push_back(one);
      }
    }
    if (sends.size() < kMessages) {
      const std::vector<std::byte>& bytes = messages[sends.size()];
      if (Send* const one = send(bytes, 0, at_a(bytes))) {
        sends.push_back(one);
      }
    }
    for (Send* const one : sends) {
      (void)is_over(one);
    }
    if (n_done < receives.size() && is_received(receives[n_done])) {
      EXPECT_TRUE(std::equal(messages[n_done].begin(), messages[n_done].end(), buffers[n_done].begin())) << n_done;
      pop();
      ++n_done;
    }
    return n_done == kMessages;
  })) << receiver->failure_text()
      << sender->failure_text();
  EXPECT_GT(n_written(), 30U);
  close();
}

TEST_F(DirectCircuits, place_members_of_a_group_by_their_tags) {
  connect_both();
  std::vector<std::byte> small(100);
  std::vector<std::byte> big(3'000'000);
  std::vector<std::byte> other(200'000);
  std::vector<std::byte> last(80'000);
  const std::map<int, std::vector<std::byte>> messages = {
      {1, pattern(2'500'000, 1)}, {2, pattern(70'000, 2)}, {3, pattern(50, 3)}, {4, pattern(200'000, 4)}};
  Receive* const first = receive({&small, &big, &other}, {3, 1, 4}, {at_b(small), at_b(big), at_b(other)});
  Receive* const second = receive({&last}, {2}, {at_b(last)});
  std::vector<Send*> sends;
  for (const int tag : {2, 4, 1, 3}) {  // the first is for the second receive, which takes any tag
    sends.push_back(send(messages.at(tag), tag, at_a(messages.at(tag))));
  }
  const auto all_over = [&] {
    bool is_all = true;
    for (Send* const one : sends) {
      is_all = is_over(one) && is_all;
    }
    return is_all;
  };
  ASSERT_TRUE(comes_true([&] { return both(all_over(), is_received(first)); })) << receiver->failure_text();
  EXPECT_EQ(n_written(), 3U);
  EXPECT_TRUE(std::equal(messages.at(1).begin(), messages.at(1).end(), big.begin()));
  EXPECT_EQ(other, messages.at(4));
  EXPECT_TRUE(std::equal(messages.at(3).begin(), messages.at(3).end(), small.begin()));
  pop();
  ASSERT_TRUE(comes_true([&] { return is_received(second); }));
  EXPECT_TRUE(std::equal(messages.at(2).begin(), messages.at(2).end(), last.begin()));
  pop();
  close();
}

TEST_F(DirectCircuits, a_message_longer_than_its_receive_is_not_written) {
  connect_both();
  const std::vector<std::byte> bytes = pattern(200'001, 1);
  std::vector<std::byte> buffer(200'000);
  Receive* const received = receive({&buffer}, {0}, {at_b(buffer)});
  send(bytes, 0, at_a(bytes));
  EXPECT_TRUE(comes_true([&] {
    EXPECT_FALSE(is_received(received));
    return receiver->failure() == FailureKind::usage;
  }));
  EXPECT_EQ(buffer[0], std::byte{}) << "nothing is written";
  EXPECT_TRUE(comes_true([&] { return sender->failure() == FailureKind::usage; }));
  close();
}

TEST_F(DirectCircuits, nothing_is_written_once_the_receiver_has_closed) {
  connect_both();
  const std::vector<std::byte> bytes = pattern(20'000'000, 1);
  std::vector<std::byte> buffer(bytes.size());
  (void)receive({&buffer}, {0}, {at_b(buffer)});
  Send* const sent = send(bytes, 0, at_a(bytes));
  ASSERT_TRUE(comes_true([&] {
    (void)is_sent(sent);
    return n_written() + (buffer[0] == bytes[0] ? 1U : 0U) > 0;
  }));
  incoming->close();
  std::ranges::fill(buffer, std::byte{0xcc});
  EXPECT_TRUE(comes_true([&] {
    (void)is_sent(sent);
    return sender->failure() != FailureKind::none;
  }));
  EXPECT_TRUE(std::ranges::all_of(buffer, [](std::byte one) { return one == std::byte{0xcc}; }));
  close();
}

TEST_F(DirectCircuits, a_sender_that_closes_early_leaves_its_memory_alone) {
  connect_both();
  auto bytes = std::make_unique<std::vector<std::byte>>(20'000'000);
  std::vector<std::byte> buffer(bytes->size());
  Receive* const received = receive({&buffer}, {0}, {at_b(buffer)});
  const Registered* const registered = at_a(*bytes);
  (void)send(*bytes, 0, registered);
  ASSERT_TRUE(comes_true([&] {
    const base::LockGuard guard(sender->lock);
    sender->progress();
    return sender->has_unfinished();
  }));
  {
    const base::LockGuard guard(sender->lock);
    sender->abandon();
  }
  a->registrations()->remove(registered);
  bytes.reset();
  sender.reset();
  outgoing->close();
  a->wake();
  EXPECT_TRUE(comes_true([&] {
    EXPECT_FALSE(is_received(received));
    return receiver->failure() != FailureKind::none;
  }));
  receiver.reset();
  incoming->close();
}

}  // namespace
}  // namespace ringbolt::circuit
