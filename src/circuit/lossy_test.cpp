#include <gtest/gtest.h>

#include <algorithm>

#include "circuit/endpoint_test_support.h"

// Circuits over a device that has UC alone, counts frames of 4 KiB and completes sends early, as a Mac over
// Thunderbolt; and where that loses messages or completions without a word.
namespace ringbolt::circuit {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::pattern;

class LossyCircuits : public test::Circuits {
 protected:
  /// Of this process from now on.
  static void be_like(const std::string& like, const std::string& faults = "") {
    ::setenv("RINGBOLT_LIKE", like.c_str(), 1);
    if (!faults.empty()) {
      ::setenv("RINGBOLT_FAULTS", faults.c_str(), 1);
    }
  }
  ~LossyCircuits() override {
    sender.reset();
    receiver.reset();
    outgoing.reset();
    incoming.reset();
    a.reset();
    b.reset();
    ::unsetenv("RINGBOLT_LIKE");
    ::unsetenv("RINGBOLT_FAULTS");
  }
  void connect_both(bool has_checksums = false) {
    a = make("a", has_checksums);
    b = make("b", has_checksums);
    connect(*a, *b);
    ASSERT_NE(sender, nullptr);
  }
  /// Messages of all sizes in both orders: sent before their receives are posted, and after.
  void carry_all() {
    unsigned seed = 0;
    for (const unsigned size : {0U, 1U, 8U, 4032U, 4096U, 65'535U, 65'536U, 65'537U, 1'000'000U, 5'000'000U}) {
      for (const bool is_early : {false, true}) {
        const std::vector<std::byte> bytes = pattern(size, ++seed);
        std::vector<std::byte> buffer(size + 9, std::byte{0xee});
        Send* sent = is_early ? send(bytes) : nullptr;
        Receive* const received = receive({&buffer}, {0});
        sent = is_early ? sent : send(bytes);
        ASSERT_TRUE(comes_true([&] {
          const bool is_here = is_received(received);  // each end moves when it is asked
          return (sent->is_free || is_sent(sent)) && is_here;
        })) << size
            << sender->failure_text() << receiver->failure_text();
        EXPECT_EQ(received->parts[0].length, size);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.begin())) << size;
        EXPECT_EQ(buffer[size], std::byte{0xee});
        pop();
      }
    }
  }
  /// More than the window holds, before anything is received.
  void carry_in_order(unsigned n) {
    std::vector<std::vector<std::byte>> messages;
    for (unsigned i = 0; i < n; ++i) {
      messages.push_back(pattern(1 + i * 701 % 3000, i));
    }
    size_t n_sent = 0;
    Send* last = nullptr;
    for (unsigned i = 0; i < n; ++i) {
      std::vector<std::byte> buffer(3000);
      Receive* const received = receive({&buffer}, {0});
      ASSERT_TRUE(comes_true([&] {
        for (; n_sent < n && (last = send(messages[n_sent])) != nullptr; ++n_sent) {
          sends.push_back(last);
        }
        std::erase_if(sends, [&](Send* one) { return is_sent(one); });
        return is_received(received);
      })) << i
          << sender->failure_text() << receiver->failure_text();
      ASSERT_EQ(received->parts[0].length, messages[i].size()) << i;
      ASSERT_TRUE(std::equal(messages[i].begin(), messages[i].end(), buffer.begin())) << i;
      pop();
    }
    ASSERT_TRUE(comes_true([&] {
      std::erase_if(sends, [&](Send* one) { return is_sent(one); });
      return sends.empty();
    }));
  }
  uint64_t n_repeated() {
    const base::LockGuard guard(sender->lock);
    return sender->n_repeated();
  }
  ibv_qp_type type() {
    const base::LockGuard guard(sender->lock);
    return sender->rails().at(0).rail->type();
  }

  std::vector<Send*> sends;
  std::unique_ptr<Endpoint> a;
  std::unique_ptr<Endpoint> b;
};

TEST_F(LossyCircuits, carry_messages_of_all_sizes_where_there_is_uc_alone) {
  for (const char* like : {"tn3205", "apple", "tn3205,gid=2,late-mr=error", "tn3205,norecv=drop"}) {
    for (const bool has_checksums : {false, true}) {
      SCOPED_TRACE(std::string(like) + (has_checksums ? " with checksums" : ""));
      be_like(like);
      connect_both(has_checksums);
      ASSERT_FALSE(HasFatalFailure());
      EXPECT_EQ(type(), IBV_QPT_UC);
      EXPECT_EQ(a->registrations(), nullptr) << "nothing is written there";
      carry_all();
      carry_in_order(100);
      close();
      a.reset();
      b.reset();
    }
  }
}

TEST_F(LossyCircuits, take_rc_where_it_is_there) {
  be_like("usb4-linux");
  connect_both();
  EXPECT_EQ(type(), IBV_QPT_RC);
  close();
}

TEST_F(LossyCircuits, send_again_what_is_lost) {
  for (const char* faults : {"message-loss 3% seed 7", "message-loss 20% seed 8", "message-loss 100% count 5-9"}) {
    SCOPED_TRACE(faults);
    be_like("tn3205", faults);
    connect_both();
    ASSERT_FALSE(HasFatalFailure());
    carry_all();
    carry_in_order(300);
    EXPECT_GT(n_repeated(), 0U);
    close();
    a.reset();
    b.reset();
  }
}

TEST_F(LossyCircuits, count_bytes_that_were_spoilt_as_lost) {
  be_like("tn3205", "bitflip 2% seed 3");
  connect_both(true);
  carry_all();
  carry_in_order(300);
  EXPECT_GT(n_repeated(), 0U);
  close();
}

TEST_F(LossyCircuits, do_without_completions_that_never_come) {
  for (const char* faults : {"completion-missing 30% seed 5", "completion-late 5% by 5ms"}) {
    SCOPED_TRACE(faults);
    be_like("tn3205", faults);
    connect_both();
    ASSERT_FALSE(HasFatalFailure());
    carry_all();
    carry_in_order(300);
    close();
    a.reset();
    b.reset();
  }
}

TEST_F(LossyCircuits, fail_with_words_where_nothing_comes_any_more) {
  be_like("tn3205", "message-loss 100% count 200-");
  connect_both();
  const std::vector<std::byte> bytes = pattern(1000, 1);
  std::vector<std::byte> buffer(1000);
  EXPECT_TRUE(comes_true(
      [&] {
        receive({&buffer}, {0});
        send(bytes);
        const base::LockGuard guard(sender->lock);
        sender->progress();
        return sender->failure() != FailureKind::none;
      },
      40s));
  EXPECT_EQ(sender->failure(), FailureKind::no_way);
  EXPECT_NE(sender->failure_text().find("UC queue pair"), std::string::npos) << sender->failure_text();
  EXPECT_NE(sender->failure_text().find("b"), std::string::npos) << sender->failure_text();
  close();
}

}  // namespace
}  // namespace ringbolt::circuit
