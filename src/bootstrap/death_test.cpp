// Ranks as processes, one of which is killed or stopped while the others meet, exchange or talk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/frame.h"
#include "bootstrap/side_channel.h"
#include "bootstrap/side_channel_test_support.h"

namespace ringbolt::bootstrap {
namespace {

using test::Party;
using test::soon;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Writes a line that the parent reads.
using Say = std::function<void(const std::string&)>;

/// A forked rank.
class Process {
 public:
  explicit Process(const std::function<void(const Say&)>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      ::alarm(120);
      const Say say = [&ends](const std::string& line) {
        const std::string text = line + "\n";
        static_cast<void>(!::write(ends[1], text.data(), text.size()));
      };
      try {
        body(say);
      } catch (const base::Error& error) {
        say(error.what());
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    input_ = ::fdopen(ends[0], "r");
  }
  ~Process() {
    kill(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::fclose(input_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill(int signal) const { ::kill(pid_, signal); }
  /// The next line it says; empty when it has ended.
  std::string hear() {
    std::array<char, 1024> line{};
    return std::fgets(line.data(), line.size(), input_) == nullptr ? "" : line.data();
  }

 private:
  pid_t pid_ = -1;
  std::FILE* input_ = nullptr;
};

/// Starts `ranks` of the party's group; when each has said its first line, `signal` befalls `victim`. Prints how long
/// it took the others to notice.
class Disaster {
 public:
  Disaster(const Party& party, const std::vector<uint32_t>& ranks, const std::function<void(Config, const Say&)>& body)
      : ranks_(ranks) {
    for (const uint32_t rank : ranks) {
      processes_.push_back(std::make_unique<Process>([&](const Say& say) { body(party.of(rank), say); }));
    }
  }

  /// What each of the others says after that, by rank.
  std::vector<std::string> strike(uint32_t victim, int signal) {
    for (const auto& process : processes_) {
      EXPECT_EQ(process->hear(), "ready\n");
    }
    uint64_t begin = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i] == victim) {
        processes_[i]->kill(signal);
        begin = base::now_ns();
      }
    }
    std::vector<std::string> heard(ranks_.back() + 1);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i] != victim) {
        heard[ranks_[i]] = processes_[i]->hear();
      }
    }
    std::printf("all others knew after %.1f ms\n", static_cast<double>(base::now_ns() - begin) / 1e6);
    return heard;
  }
  Process& process(size_t i) { return *processes_[i]; }

 private:
  std::vector<uint32_t> ranks_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(Death, while_the_ranks_meet) {
  for (const uint32_t victim : {0U, 1U, 2U}) {
    Party party(5);  // rank 4 never comes
    Disaster disaster(party, {0, 1, 2}, [](const Config& config, const Say& say) {
      say("ready");
      try {
        SideChannel::join(config);
        say("joined");
      } catch (const base::Error& error) {
        say(error.what());
      }
    });
    test::Witness witness(party.of(3));
    ASSERT_TRUE(witness.sees({1, 2}));
    const auto heard = disaster.strike(victim, SIGKILL);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank != victim && victim != 0) {
        EXPECT_THAT(heard[rank], HasSubstr("rank " + std::to_string(victim) + " (127.0.0.1:"));
        EXPECT_THAT(heard[rank], HasSubstr("was lost before all had come"));
      } else if (rank != victim) {
        EXPECT_THAT(heard[rank], HasSubstr("rank 0 (127.0.0.1:"));
        EXPECT_THAT(heard[rank], HasSubstr("closed the connection while it waited for"));
      }
    }
  }
}

TEST(Death, during_an_exchange) {
  for (const uint32_t victim : {0U, 1U, 3U}) {
    Party party(4);
    Disaster disaster(party, {0, 1, 2, 3}, [victim](const Config& config, const Say& say) {
      SideChannel side_channel = SideChannel::join(config);
      const bool has_met = side_channel.barrier(soon()).has_value();
      say(has_met ? "ready" : "not ready");
      if (config.rank == victim) {
        ::pause();
      }
      const auto done = side_channel.barrier(soon());
      say(done ? "done" : done.error().text);
    });
    const auto heard = disaster.strike(victim, SIGKILL);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      if (rank != victim) {
        // A rank that calls only afterwards knows no exchange.
        EXPECT_THAT(heard[rank], HasSubstr("rank " + std::to_string(victim) + " was lost"));
        EXPECT_THAT(heard[rank], HasSubstr("; it was at 127.0.0.1:"));
      }
    }
  }
}

TEST(Death, on_the_side_channel) {
  for (const uint32_t victim : {0U, 2U}) {
    Party party(4);
    Disaster disaster(party, {0, 1, 2, 3}, [](const Config& config, const Say& say) {
      SideChannel side_channel = SideChannel::join(config);
      static_cast<void>(side_channel.barrier(soon()));
      say("ready");
      const Event event = test::wait_for_event(side_channel, Event::Kind::lost);
      say("lost " + std::to_string(event.rank));
      ::pause();
    });
    const auto heard = disaster.strike(victim, SIGKILL);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(heard[rank], rank == victim ? "" : "lost " + std::to_string(victim) + "\n");
    }
  }
}

volatile sig_atomic_t is_continued = 0;

TEST(Death, stopped_rank_is_named_at_the_deadline_and_wakes_up_to_a_failure) {
  for (const uint32_t victim : {0U, 2U}) {
    Party party(3);
    Disaster disaster(party, {0, 1, 2}, [victim](const Config& config, const Say& say) {
      ::signal(SIGCONT, [](int) { is_continued = 1; });
      SideChannel side_channel = SideChannel::join(config);
      static_cast<void>(side_channel.barrier(soon()));
      say("ready");
      if (config.rank == victim) {
        while (is_continued == 0) {  // the parent stops and continues it
          ::poll(nullptr, 0, 1);
        }
        say(side_channel.barrier(soon()).has_value() ? "done" : "failed");
        return;
      }
      const auto done = side_channel.barrier(base::now_ns() + 500'000'000);
      say(done ? "done" : done.error().text);
      ::pause();
    });
    const auto heard = disaster.strike(victim, SIGSTOP);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank != victim) {
        EXPECT_THAT(heard[rank],
                    HasSubstr("the deadline of barrier 2 has passed; it waits for rank " + std::to_string(victim)));
      }
    }
    if (victim != 0) {
      disaster.process(victim).kill(SIGCONT);
      EXPECT_EQ(disaster.process(victim).hear(), "failed\n");
    }
  }
}

TEST(Death, rank_0_that_stops_while_the_ranks_meet_is_named_and_not_whom_it_waited_for) {
  Party party(4);  // rank 3 never comes
  party.config.timeout_ms = 3'000;
  party.config.silent_ms = 1;  // of 3 s, less what it takes to stop it
  Disaster disaster(party, {0, 1}, [](const Config& config, const Say& say) {
    say("ready");
    SideChannel::join(config);
  });
  test::Witness witness(party.of(2));
  ASSERT_TRUE(witness.sees({1, 2}));  // so that rank 1 has been told of rank 3
  EXPECT_THAT(disaster.strike(0, SIGSTOP)[1], AllOf(HasSubstr("it waits for rank 0, which has said nothing for "),
                                                    HasSubstr("waited for rank 3 before")));
}

TEST(Death, rank_0_that_stops_in_an_exchange_is_named_and_not_whom_it_waited_for) {
  Party party(3);
  party.config.silent_ms = 1;
  Disaster disaster(party, {0, 1, 2}, [](const Config& config, const Say& say) {
    SideChannel side_channel = SideChannel::join(config);
    static_cast<void>(side_channel.barrier(soon()));
    if (config.rank == 0) {
      // Is stopped after it has told rank 1 that all wait for rank 2, or before: then nobody but rank 0 was waited for.
      std::thread([&] {
        ::poll(nullptr, 0, 200);
        say("ready");
      }).detach();
      static_cast<void>(side_channel.barrier(soon()));
      return;
    }
    say("ready");
    say(config.rank == 2 ? "does not call" : side_channel.barrier(base::now_ns() + 2'500'000'000).error().text);
    ::pause();
  });
  EXPECT_THAT(disaster.strike(0, SIGSTOP)[1], HasSubstr("it waits for rank 0"));
}

TEST(Death, host_of_a_stopped_rank_answers) {
  Party party(2);
  Disaster disaster(party, {0, 1}, [](const Config& config, const Say& say) {
    SideChannel side_channel = SideChannel::join(config);
    static_cast<void>(side_channel.barrier(soon()));
    say("ready");
    if (config.rank == 1) {
      ::pause();
    }
    // Without anything to acknowledge for longer than that, then with.
    ::poll(nullptr, 0, 300);
    const bool is_quiet = side_channel.hosts_answering(200) == 0;
    static_cast<void>(side_channel.send(1, 1, std::vector<std::byte>(100), true));
    bool is_answered = false;
    for (const uint64_t end = soon(); !is_answered && base::now_ns() < end;) {
      is_answered = side_channel.hosts_answering(200) == 2;
    }
    say(is_quiet && is_answered ? "answers" : "silent");
    ::pause();
  });
  EXPECT_EQ(disaster.strike(1, SIGSTOP)[0], "answers\n");
}

TEST(Death, host_of_a_stopped_rank_answers_when_its_buffers_are_full) {
  Party party(2);
  Disaster disaster(party, {0, 1}, [](const Config& config, const Say& say) {
    SideChannel side_channel = SideChannel::join(config);
    static_cast<void>(side_channel.barrier(soon()));
    say("ready");
    if (config.rank == 1) {
      ::pause();
    }
    for (int i = 0; i < 4; ++i) {
      static_cast<void>(side_channel.send(1, 1, std::vector<std::byte>(kMaxMessageBytes)));
    }
    uint64_t answered_ns = base::now_ns();
    uint64_t longest_ns = 0;
    for (const uint64_t end = base::now_ns() + 8'000'000'000; base::now_ns() < end;) {
      static_cast<void>(side_channel.send(1, 1, std::vector<std::byte>(100), true));
      ::poll(nullptr, 0, 100);
      const uint64_t now = base::now_ns();
      answered_ns = side_channel.hosts_answering(150) == 2 ? now : answered_ns;
      longest_ns = std::max(longest_ns, now - answered_ns);
    }
    say(longest_ns < 1'000'000'000 ? "answers" : "silent for " + std::to_string(longest_ns / 1'000'000) + " ms");
    ::pause();
  });
  EXPECT_EQ(disaster.strike(1, SIGSTOP)[0], "answers\n");
}

TEST(Death, stopped_before_it_has_joined_is_missing) {
  Party party(3);
  party.config.timeout_ms = 600;
  Disaster disaster(party, {0, 1, 2}, [](const Config& config, const Say& say) {
    if (config.rank == 2) {
      say("ready");
      ::pause();
    }
    say("ready");
    SideChannel::join(config);
  });
  const auto heard = disaster.strike(2, SIGSTOP);
  EXPECT_THAT(heard[0], HasSubstr("not come: rank 2"));
  EXPECT_THAT(heard[1], HasSubstr("rank 2"));
}

}  // namespace
}  // namespace ringbolt::bootstrap
