#include "rdmacm/lines.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "rdmacm/devices.h"

namespace ringbolt::rdmacm {
namespace {

constexpr wire::Address kLoopback = wire::ipv4_address(127, 0, 0, 1);
constexpr uint64_t kMine = 0x11;
constexpr uint64_t kYours = 0x22;
constexpr uint64_t kPatienceNs = 20'000'000'000;
using Kind = Lines::News::Kind;

Lines::Place at(uint16_t port) { return {kLoopback, kLoopback, 0, port}; }

/// Serves until there is news, or `other` has served too and the condition holds.
template <class Done>
std::vector<Lines::News> serve_until(Lines& lines, Done done) {
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  std::vector<Lines::News> all;
  while (!done(all) && base::now_ns() < deadline) {
    pollfd waiting{lines.descriptor(), POLLIN, 0};
    poll(&waiting, 1, 1);
    const auto more = lines.serve(base::now_ns());
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}
Kind news_of(Lines& lines, uint64_t token) {
  const auto all = serve_until(lines, [](const auto& news) { return !news.empty(); });
  EXPECT_EQ(all.size(), 1U);
  EXPECT_EQ(all.empty() ? 0 : all.front().token, token);
  return all.empty() ? Kind::broken : all.front().kind;
}

/// The process at the other end: in a child, so that it can be killed. It says its port, calls or is called, and lives.
class OtherProcess {
 public:
  explicit OtherProcess(uint16_t my_port, bool calls) {
    int told[2];
    int heard[2];
    EXPECT_EQ(pipe(told), 0);
    EXPECT_EQ(pipe(heard), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(told[0]);
      close(heard[1]);
      Lines lines(kYours);
      const uint16_t port = lines.listen_at(kLoopback, 0);
      lines.expect(kMine, at(my_port));
      [[maybe_unused]] ssize_t written = write(told[1], &port, sizeof port);
      if (calls) {
        lines.call(base::now_ns(), kMine, at(my_port));
      }
      for (;;) {
        pollfd waiting[] = {{lines.descriptor(), POLLIN, 0}, {heard[0], POLLIN, 0}};
        poll(waiting, 2, -1);
        lines.serve(base::now_ns());
        char word = 0;
        if ((waiting[1].revents & POLLIN) != 0 && read(heard[0], &word, 1) == 1 && word == 'd') {
          lines.drop(kMine);
        } else if (waiting[1].revents != 0) {
          _exit(0);
        }
      }
    }
    close(told[1]);
    close(heard[0]);
    told_ = base::UniqueFd(told[0]);
    heard_ = base::UniqueFd(heard[1]);
    EXPECT_EQ(read(told_.get(), &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
  }
  ~OtherProcess() { kill(); }
  uint16_t port() const { return port_; }
  void say(char word) { EXPECT_EQ(write(heard_.get(), &word, 1), 1); }
  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
  base::UniqueFd told_;
  base::UniqueFd heard_;
};

class LinesTest : public testing::Test {
 protected:
  /// Until the other process has been seen to agree: all of its words have come.
  void let_it_stand() {
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    while (mine.standing() == 0 && base::now_ns() < deadline) {
      pollfd waiting{mine.descriptor(), POLLIN, 0};
      poll(&waiting, 1, 1);
      EXPECT_TRUE(mine.serve(base::now_ns()).empty());
    }
    EXPECT_EQ(mine.standing(), 1U);
  }
  /// A caller that has said hello.
  base::UniqueFd call_by_hand() {
    base::UniqueFd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage to{};
    write_address(kLoopback, port, 0, to);
    EXPECT_EQ(connect(caller.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
    const auto hello = wire::emit(wire::LifelineWord{wire::LifelineWord::Kind::hello, kYours, kMine});
    EXPECT_EQ(write(caller.get(), hello.data(), hello.size()), static_cast<ssize_t>(hello.size()));
    return caller;
  }
  Lines mine{kMine};
  const uint16_t port = mine.listen_at(kLoopback, 0);
};

TEST_F(LinesTest, have_one_port_an_address) {
  EXPECT_NE(port, 0);
  EXPECT_EQ(mine.listen_at(kLoopback, 0), port);
  EXPECT_EQ(mine.listen_at(wire::ipv4_address(192, 0, 2, 77), 0), 0);  // none of ours
}

TEST_F(LinesTest, listen_as_long_as_they_are_asked_to) {
  mine.stop_listening();
  mine.expect(kYours, at(1));
  Lines other(kYours);
  if (other.call(base::now_ns(), kMine, at(port))) {
    EXPECT_EQ(news_of(other, kMine), Kind::broken);
  }
  EXPECT_NE(mine.listen_at(kLoopback, 0), 0);
}

TEST_F(LinesTest, tell_of_the_death_of_who_was_called) {
  OtherProcess other(port, false);
  mine.expect(kYours, at(other.port()));
  EXPECT_TRUE(mine.call(base::now_ns(), kYours, at(other.port())));
  let_it_stand();
  other.kill();
  EXPECT_EQ(news_of(mine, kYours), Kind::dead);
  EXPECT_EQ(mine.standing(), 0U);
}

TEST_F(LinesTest, tell_of_the_death_of_who_called) {
  mine.expect(kYours, at(1));
  OtherProcess other(port, true);
  mine.expect(kYours, at(other.port()));
  let_it_stand();
  other.kill();
  EXPECT_EQ(news_of(mine, kYours), Kind::dead);
}

// A kernel resets what its process has not read, so there is no end of file.
TEST_F(LinesTest, tell_of_the_death_of_who_has_not_read_our_welcome) {
  mine.expect(kYours, at(1));
  base::UniqueFd caller = call_by_hand();
  let_it_stand();
  caller.reset();
  EXPECT_EQ(news_of(mine, kYours), Kind::dead);
}

TEST_F(LinesTest, say_nothing_of_who_lets_go) {
  mine.expect(kYours, at(1));
  OtherProcess other(port, true);
  mine.expect(kYours, at(other.port()));
  let_it_stand();
  other.say('d');
  EXPECT_EQ(news_of(mine, kYours), Kind::broken);
}

TEST_F(LinesTest, say_nothing_when_nobody_is_there) {
  uint16_t free_port = 0;
  {
    Lines gone(kYours);
    free_port = gone.listen_at(kLoopback, 0);
  }
  if (mine.call(base::now_ns(), kYours, at(free_port))) {
    EXPECT_EQ(news_of(mine, kYours), Kind::broken);
  }
}

TEST_F(LinesTest, are_had_with_those_alone_that_are_expected) {
  OtherProcess other(port, true);  // nobody has told of it
  const uint64_t began = base::now_ns();
  serve_until(mine, [&](const auto&) { return base::now_ns() > began + 200'000'000; });
  EXPECT_EQ(mine.standing(), 0U);
}

TEST_F(LinesTest, look_into_a_reset) {
  for (const bool is_alive : {true, false}) {
    Lines other(kYours);
    const uint16_t other_port = is_alive ? other.listen_at(kLoopback, 0) : 1;
    mine.expect(kYours, at(other_port));
    base::UniqueFd caller = call_by_hand();
    let_it_stand();
    const linger at_once{1, 0};
    setsockopt(caller.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    caller.reset();
    EXPECT_EQ(news_of(mine, kYours), is_alive ? Kind::broken : Kind::dead);
  }
}

TEST_F(LinesTest, end_with_their_process_though_a_child_lives) {
  OtherProcess other(port, false);
  mine.expect(kYours, at(other.port()));
  ASSERT_TRUE(mine.call(base::now_ns(), kYours, at(other.port())));
  let_it_stand();
  mine.before_fork();
  const pid_t child = fork();
  if (child == 0) {
    mine.abandon_after_fork();
    mine.after_fork();
    pause();
  }
  mine.after_fork();
  other.kill();
  EXPECT_EQ(news_of(mine, kYours), Kind::dead);
  ::kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(LinesTest, wait_for_no_stranger_for_long) {
  const base::UniqueFd caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage to{};
  write_address(kLoopback, port, 0, to);
  ASSERT_EQ(connect(caller.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)), 0);
  serve_until(mine, [&](const auto&) { return mine.next_deadline_ns() != UINT64_MAX; });
  EXPECT_TRUE(mine.serve(mine.next_deadline_ns()).empty());
  EXPECT_EQ(mine.next_deadline_ns(), UINT64_MAX);
  char word = 0;
  EXPECT_EQ(read(caller.get(), &word, 1), 0);
}

}  // namespace
}  // namespace ringbolt::rdmacm
