// What may be said on a connection, and when; without processes, files or threads.

#include "link/peer_lines.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "link/peer_process.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using testing::marked_memfd;
using testing::Recorder;

constexpr uint32_t kOurSlot = 3;
constexpr uint32_t kTheirSlot = 4;

/// Those of a message.
std::span<const int> gifts_of(const Message& message, const std::vector<int>& all) {
  return std::span(all).subspan(std::holds_alternative<Hello>(message) ? 0 : 2).first(descriptor_count(message));
}

/// The lines of a process, and callers who say what a test tells them to.
class PeerLinesTest : public ::testing::Test {
 protected:
  base::UniqueFd caller() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    lines_.take(base::UniqueFd(ends[0]));
    return base::UniqueFd(ends[1]);
  }
  /// What may go along: three for a Hello, and behind these two for any other message.
  std::vector<int> gifts() const { return {bell_.get(), table_.get(), memory_.get(), memory_.get(), memory_.get()}; }
  void say(const base::UniqueFd& fd, const Message& message) const {
    send_datagram(fd.get(), EncodedMessage(message).bytes(), gifts_of(message, gifts()));
  }
  /// Serves every event once; how many there were.
  size_t serve() {
    std::array<epoll_event, 16> buffer;
    const size_t count = events_.wait(buffer, 0);
    for (size_t i = 0; i < count; ++i) {
      if (PeerEvents::source_of(buffer[i]) == Source::line) {
        lines_.serve(PeerEvents::id_of(buffer[i]), buffer[i].events);
      }
    }
    return count;
  }
  void serve_all() {
    for (int i = 0; i < 1000 && serve() != 0; ++i) {
    }
  }

  base::UniqueFd bell_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  base::UniqueFd memory_{marked_memfd(5)};
  base::UniqueFd table_{reopen_read_only(memory_.get())};
  Recorder seen_;
  PeerTable peers_;
  PeerEvents events_;
  const Greeting greeting_{
      EncodedMessage(Hello{kOurSlot, 77, 0, 0}), {bell_.get(), table_.get(), memory_.get()}, false};
  PeerLines lines_{seen_, peers_, events_, greeting_, kOurSlot};
};

TEST_F(PeerLinesTest, a_hello_is_answered_by_ours) {
  const base::UniqueFd fd = caller();
  Datagram answer;
  EXPECT_EQ(receive_datagram(fd.get(), answer), Received::nothing) << "who calls speaks first";
  say(fd, Hello{kTheirSlot, 1, 0, 0});
  serve_all();
  ASSERT_EQ(receive_datagram(fd.get(), answer), Received::message);
  EXPECT_EQ(parse(answer.bytes()), std::optional<Message>(Hello{kOurSlot, 77, 0, 0}));
  EXPECT_EQ(answer.descriptor_count, 3U);
  ASSERT_EQ(seen_.ready.size(), 1U);
  EXPECT_EQ(seen_.ready[0]->slot(), kTheirSlot);
  EXPECT_EQ(seen_.ready[0]->incarnation(), 1U);
}

/// What a connection comes to by the rules of docs/formats/rendezvous.md.
struct LineModel {
  bool has_said_hello = false;
  bool is_dropped = false;
  bool has_said_bye = false;
  int pokes = 0;
  std::vector<std::string> events;

  void drop() {
    is_dropped = true;
    if (has_said_hello) {
      events.push_back("gone");
    }
  }
  void hear(const std::string& event) {
    if (has_said_hello) {
      events.push_back(event);
    } else {
      drop();
    }
  }
};

/// One message, proper or not, to the connection and to the model.
void say_something(uint32_t choice, int fd, const std::vector<int>& gifts, LineModel& model) {
  const auto send = [&](const Message& message, int missing = 0) {
    const std::span<const int> whole = gifts_of(message, gifts);
    send_datagram(fd, EncodedMessage(message).bytes(), whole.first(whole.size() - static_cast<size_t>(missing)));
  };
  const auto hear_hello = [&](bool is_allowed) {
    if (!is_allowed) {
      return model.drop();
    }
    if (!model.has_said_hello) {
      model.events.push_back("ready");
    }
    model.has_said_hello = true;
  };
  Offer offer = testing::numbered_offer(choice);
  std::array<std::byte, kMaxMessageBytes> garbage{};
  switch (choice) {
    case 0:
      send(Hello{kTheirSlot, 9, 0, 0});
      return hear_hello(true);
    case 1:
      send(Hello{kTheirSlot, 8, 0, 0});
      return hear_hello(false);  // the model says 0 before it, see below
    case 2:
      send(Hello{kTheirSlot, 9, 0, 0}, 1);
      return model.drop();
    case 3:
      send(offer);
      return model.hear("offer");
    case 4:
      offer.receive_channel = offer.send_channel = 6;  // one channel for both
      send(offer);
      return model.hear("offer");
    case 5:
      send(offer, 1);
      return model.drop();
    case 6:
      send(Withdraw{1, 2, 3});
      return model.hear("withdraw");
    case 7:
      send(Arena{1, 4096});
      return model.hear("arena");
    case 8:
      send(Release{1});
      return model.hear("release");
    case 9:
      send(Refuse{1, 2, 3, 4});
      return model.hear("refuse");
    case 10:
      send(Poke{});
      model.pokes += 1;
      return;
    case 11:
      send(Bye{});
      model.has_said_bye |= model.has_said_hello;
      return model.has_said_hello ? void() : model.drop();
    default:
      send_datagram(fd, std::span(garbage).first(choice), {});
      return model.drop();
  }
}

TEST_F(PeerLinesTest, whatever_order_things_are_said_in_the_rules_hold) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    seen_ = {};
    base::UniqueFd fd = caller();
    LineModel model;
    if (random() % 4 != 0) {
      say_something(0, fd.get(), gifts(), model);
    }
    for (size_t words = random() % 12; words > 0 && !model.is_dropped; --words) {
      const auto choice = static_cast<uint32_t>(random() % (random() % 10 == 0 ? kMaxMessageBytes : 12));
      if (choice == 1 && !model.has_said_hello) {
        continue;  // a first Hello of any incarnation is a Hello
      }
      say_something(choice, fd.get(), gifts(), model);
      if (random() % 2 == 0) {
        serve_all();
      }
    }
    serve_all();
    EXPECT_EQ(peers_.lines().size(), model.is_dropped ? 0U : 1U) << "seed " << seed;
    fd.reset();
    if (!model.is_dropped) {
      model.drop();
    }
    serve_all();
    ASSERT_EQ(seen_.events, model.events) << "seed " << seed;
    ASSERT_EQ(seen_.pokes, model.pokes) << "seed " << seed;
    ASSERT_TRUE(peers_.lines().empty()) << "seed " << seed;
    ASSERT_EQ(peers_.living_at(kTheirSlot), nullptr) << "seed " << seed;
    if (!seen_.gone.empty()) {
      ASSERT_EQ(seen_.gone[0]->left_orderly(), model.has_said_bye) << "seed " << seed;
    }
  }
}

TEST_F(PeerLinesTest, leave_no_descriptor_of_whom_they_have_dropped) {
  constexpr std::array<std::byte, 3> kNothing{};
  const std::vector<int> all = gifts();
  const size_t before = testing::open_descriptors();
  for (int i = 0; i < 50; ++i) {
    base::UniqueFd fd = caller();
    say(fd, Hello{kTheirSlot, 1, 0, 0});
    say(fd, testing::numbered_offer(1));
    send_datagram(fd.get(), std::span(kNothing),
                  std::span(all).first(kMaxDescriptors));  // with descriptors, and no message
    serve_all();
    seen_ = {};  // and with it the peers that a program has let go
  }
  serve_all();
  EXPECT_EQ(testing::open_descriptors(), before);
}

TEST_F(PeerLinesTest, a_talker_does_not_keep_the_others_waiting) {
  const base::UniqueFd talker = caller();
  say(talker, Hello{kTheirSlot, 1, 0, 0});
  for (uint32_t i = 0; i < 150; ++i) {
    say(talker, Withdraw{i, 0, 1});
  }
  const base::UniqueFd other = caller();
  say(other, Hello{kTheirSlot + 1, 1, 0, 0});
  serve();  // each of both once
  EXPECT_EQ(seen_.ready.size(), 2U);
  EXPECT_LT(seen_.withdraws.size(), 150U);
  serve_all();
  ASSERT_EQ(seen_.withdraws.size(), 150U);
  for (uint32_t i = 0; i < 150; ++i) {
    EXPECT_EQ(seen_.withdraws[i].source_qpn, i);
  }
}

TEST_F(PeerLinesTest, events_of_what_is_gone_already_are_nothing) {
  lines_.serve(999, EPOLLIN | EPOLLOUT | EPOLLHUP);
  lines_.bury(999);
  lines_.retry();
  const base::UniqueFd fd = caller();
  say(fd, Hello{kTheirSlot, 1, 0, 0});
  serve_all();
  ASSERT_EQ(seen_.ready.size(), 1U);
  lines_.bury(peers_.living_at(kTheirSlot)->id());
  EXPECT_EQ(seen_.events, (std::vector<std::string>{"ready", "gone"}));
  serve_all();
  EXPECT_EQ(seen_.gone.size(), 1U) << "once";
}

TEST_F(PeerLinesTest, tell_nothing_once_they_are_stopped) {
  const base::UniqueFd fd = caller();
  say(fd, Hello{kTheirSlot, 1, 0, 0});
  serve_all();
  const uint64_t id = peers_.lines()[0]->id;
  say(fd, Withdraw{1, 2, 3});
  lines_.stop();
  lines_.serve(id, EPOLLIN);
  lines_.bury(peers_.living_at(kTheirSlot)->id());
  EXPECT_EQ(seen_.events, std::vector<std::string>{"ready"});
}

TEST(PeerLog, says_one_line_a_second_and_counts_the_others) {
  const auto log = [](const char* level) {
    setenv("RINGBOLT_LOG", level, 1);
    PeerLog made;
    unsetenv("RINGBOLT_LOG");
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 1000; ++i) {
      made.dropped(3, 4711, "it stammers");
    }
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(log("info"), "");
  const std::string text = log("debug");
  const std::string first =
      "ringbolt: slot 3: dropped a connection of process 4711: it stammers (0 more since the last such line)\n";
  EXPECT_TRUE(text.starts_with(first)) << text;
  // One line, unless the machine stood still for a second meanwhile.
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 10) << text;
}

}  // namespace
}  // namespace ringbolt::link
