// Several processes behind one port: who gets which packet while members come, leave, are stopped and killed.
#include "link/udp_group.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/udp_selector.h"
#include "link/udp_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

constexpr size_t kMostMembers = 8;
constexpr size_t kMostPackets = 4096;

/// What the members of a test tell each other: memory that forked children share.
struct Board {
  std::atomic<uint32_t> opened[kMostMembers];
  std::atomic<uint32_t> got[kMostMembers];                 // packets for the member with this number
  std::atomic<uint8_t> times[kMostMembers][kMostPackets];  // how often each was seen
  std::atomic<uint32_t> foreign;                           // packets for another slot that were delivered
  std::atomic<uint32_t> forwarded[kMostMembers];           // by the member with this number
  std::atomic<uint32_t> changes[kMostMembers];
  std::atomic<uint32_t> lost[kMostMembers];     // given up by the member with this number
  std::atomic<uint32_t> strange[kMostMembers];  // refused by it
  std::atomic<bool> must_leave[kMostMembers];
};

class SharedBoard {
 public:
  SharedBoard() : board_(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~SharedBoard() { munmap(board_, sizeof(Board)); }
  Board* operator->() const { return static_cast<Board*>(board_); }

 private:
  void* board_;
};

bool wait_until(const std::function<bool()>& is_done) {
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  while (!is_done()) {
    if (base::now_ns() > deadline) {
      return false;
    }
    sched_yield();
  }
  return true;
}

/// A member process with slot 10 + number: receives until it is told to leave.
std::unique_ptr<Child> member(const SlotsFolder& folder, const SharedBoard& board, uint32_t number) {
  return std::make_unique<Child>([&folder, &board, number] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the test itself crashes
    auto endpoint = folder.open(10 + number);
    board->opened[number] = 1;
    while (!board->must_leave[number]) {
      endpoint->receive(
          [&](const UdpEndpoint::Arrived& arrived) {
            const uint32_t packet = number_of(arrived.packet);
            if (dest_qp(arrived.packet) != qpn_of(10 + number) || !wire::check_icrc(arrived.flow, arrived.packet)) {
              ++board->foreign;
            } else {
              ++board->times[number][packet % kMostPackets];
              ++board->got[number];
            }
          },
          16);
      board->forwarded[number] = static_cast<uint32_t>(endpoint->counters().forwarded_packets);
      board->lost[number] = static_cast<uint32_t>(endpoint->counters().forward_failures);
      board->strange[number] = static_cast<uint32_t>(endpoint->counters().dropped_strangers);
      board->changes[number] = static_cast<uint32_t>(endpoint->counters().group_changes);
      sched_yield();
    }
    endpoint.reset();
    board->opened[number] = 0;
    return 0;
  });
}

/// The members of a test and the sender, which is one as well: they all share the port.
struct Stage {
  explicit Stage(uint32_t count) : sender(folder.open(1)), batch(*sender) {
    for (uint32_t number = 0; number < count; ++number) {
      start(number);
    }
  }
  void start(uint32_t number) {
    if (members.size() <= number) {
      members.resize(number + 1);
      sent.resize(number + 1);
    }
    board->must_leave[number] = false;
    board->opened[number] = 0;
    members[number] = member(folder, board, number);
    EXPECT_TRUE(wait_until([&] { return board->opened[number] == 1; }));
  }
  /// Sends the next packet of each of `numbers`, over both families in turn, and plays its own part in the group.
  void send(const std::vector<uint32_t>& numbers) {
    for (const uint32_t number : numbers) {
      const UdpPath path = sent[number] % 2 == 0 ? ipv4_path() : ipv6_path();
      EXPECT_TRUE(put(batch, path, numbered_packet(qpn_of(10 + number), sent[number]++, 64)));
    }
    EXPECT_EQ(batch.flush().left, 0U);
    sender->receive([](const UdpEndpoint::Arrived&) { ADD_FAILURE() << "nothing is sent to the sender"; }, 16);
  }
  bool has_all(uint32_t number) { return board->got[number] == sent[number]; }
  /// Everything sent to these members arrives, each packet once. The sender passes on what reaches it.
  void expect_all(const std::vector<uint32_t>& numbers) {
    for (const uint32_t number : numbers) {
      EXPECT_TRUE(wait_until([&] {
        drain(*sender);
        return board->got[number] >= sent[number];
      })) << "member "
          << number << ": " << board->got[number] << " of " << sent[number] << losses();
      for (uint32_t packet = 0; packet < sent[number]; ++packet) {
        EXPECT_EQ(board->times[number][packet], 1) << "member " << number << " packet " << packet;
      }
    }
    EXPECT_EQ(board->foreign, 0U);
  }
  std::string losses() const {
    std::string text = "; given up and refused by the sender " + std::to_string(sender->counters().forward_failures) +
                       " " + std::to_string(sender->counters().dropped_strangers) + ", by members";
    for (uint32_t number = 0; number < members.size(); ++number) {
      text += " " + std::to_string(board->lost[number]) + " " + std::to_string(board->strange[number]);
    }
    return text;
  }
  void kill(uint32_t number) {
    members[number]->kill(SIGKILL);
    members[number]->wait();
    members[number].reset();
  }

  SlotsFolder folder;
  SharedBoard board;
  std::unique_ptr<UdpEndpoint> sender;
  UdpBatch batch;
  std::vector<std::unique_ptr<Child>> members;
  std::vector<uint32_t> sent;
};

TEST(UdpGroup, hands_each_packet_to_the_process_of_its_slot) {
  in_own_network([] {
    Stage stage(3);
    for (int i = 0; i < 200; ++i) {
      stage.send({0, 1, 2});
    }
    stage.expect_all({0, 1, 2});
    drain(*stage.sender);
    EXPECT_EQ(stage.sender->counters().forwarded_packets, 0U);  // by the kernel, without detours
    EXPECT_EQ(stage.board->forwarded[0] + stage.board->forwarded[1] + stage.board->forwarded[2], 0U);
  });
}

TEST(UdpGroup, loses_nothing_while_a_member_leaves_and_another_comes) {
  in_own_network([] {
    for (uint32_t leaver = 0; leaver < 3; ++leaver) {
      Stage stage(3);
      std::vector<uint32_t> others{0, 1, 2};
      std::erase(others, leaver);
      for (int i = 0; i < 300; ++i) {
        stage.send(i < 100 ? std::vector<uint32_t>{0, 1, 2} : others);
        if (i == 100) {
          stage.expect_all({0, 1, 2});
          stage.board->must_leave[leaver] = true;
        }
      }
      stage.expect_all(others);
      EXPECT_EQ(stage.members[leaver]->wait(), 0);
      stage.start(3);
      for (int i = 0; i < 100; ++i) {
        stage.send({others[0], others[1], 3});
      }
      stage.expect_all({others[0], others[1], 3});
    }
  });
}

TEST(UdpGroup, loses_nothing_of_others_when_a_member_is_killed) {
  in_own_network([] {
    for (uint32_t victim = 0; victim < 3; ++victim) {
      Stage stage(3);
      std::vector<uint32_t> others{0, 1, 2};
      std::erase(others, victim);
      stage.send({0, 1, 2});
      for (int i = 0; i < 300; ++i) {
        stage.send(others);
        if (i == 100) {
          stage.kill(victim);
        }
      }
      stage.expect_all(others);
      // Soon the kernel does it without anybody's help again.
      EXPECT_TRUE(wait_until([&] {
        drain(*stage.sender);
        const uint32_t before = stage.board->forwarded[others[0]] + stage.board->forwarded[others[1]] +
                                static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
        stage.send(others);
        stage.expect_all(others);
        drain(*stage.sender);
        return before == stage.board->forwarded[others[0]] + stage.board->forwarded[others[1]] +
                             static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
      }));
    }
  });
}

// Two deaths at a time leave it open who was moved where: the survivors must find out by themselves.
TEST(UdpGroup, finds_its_order_again_after_several_deaths) {
  in_own_network([] {
    for (const bool is_reversed : {false, true}) {
      Stage stage(6);
      stage.send({0, 1, 2, 3, 4, 5});
      stage.expect_all({0, 1, 2, 3, 4, 5});
      // All stopped: nobody sees the first death before the last.
      for (auto& each : stage.members) {
        each->kill(SIGSTOP);
      }
      for (const uint32_t victim : is_reversed ? std::vector<uint32_t>{2, 1, 0} : std::vector<uint32_t>{0, 1, 2}) {
        stage.kill(victim);
      }
      for (uint32_t i = 3; i < 6; ++i) {
        stage.members[i]->kill(SIGCONT);
      }
      for (int i = 0; i < 200; ++i) {
        stage.send({3, 4, 5});
      }
      stage.expect_all({3, 4, 5});
      EXPECT_TRUE(wait_until([&] {
        const auto strays = [&] {
          drain(*stage.sender);
          return stage.board->forwarded[3] + stage.board->forwarded[4] + stage.board->forwarded[5] +
                 static_cast<uint32_t>(stage.sender->counters().forwarded_packets);
        };
        const uint32_t before = strays();
        stage.send({3, 4, 5});
        stage.expect_all({3, 4, 5});
        return strays() == before;
      }));
    }
  });
}

TEST(UdpGroup, is_not_disturbed_by_a_stopped_member) {
  in_own_network([] {
    Stage stage(3);
    stage.members[1]->kill(SIGSTOP);
    for (int i = 0; i < 300; ++i) {
      stage.send({0, 1, 2});
      if (i == 100) {
        stage.kill(0);  // what had been the last socket moves
        stage.start(0);
        stage.board->got[0] = 0;
        for (auto& times : stage.board->times[0]) {
          times = 0;
        }
        stage.sent[0] = 0;
      }
    }
    stage.expect_all({0, 2});
    stage.members[1]->kill(SIGCONT);
    stage.expect_all({1});  // waited in the kernel meanwhile
  });
}

TEST(UdpGroup, passes_on_what_goes_astray) {
  in_own_network([] {
    Stage stage(2);
    // Joining announces itself; only then does the group rest.
    EXPECT_TRUE(wait_until([&] {
      drain(*stage.sender);
      return stage.board->changes[0] > 0 && stage.sender->counters().group_changes > 0;
    }));
    // A program that sends everything to the sender's own socket, the first of the group.
    const std::vector<UdpChoice> wrong{{10, 0}, {11, 0}};
    for (int fd = 3; fd < 64; ++fd) {
      attach_udp_selector(fd, udp_selector(wrong, 3, kSlotShift));  // refused by all but the two sockets
    }
    UdpBatch batch(*stage.sender);
    constexpr uint32_t kPackets = 15;
    for (const UdpPath& path : {ipv4_path(), ipv6_path()}) {
      for (uint32_t number : {0U, 1U}) {
        for (uint32_t i = 0; i < kPackets; ++i) {  // whole GSO calls
          EXPECT_TRUE(put(batch, path, numbered_packet(qpn_of(10 + number), stage.sent[number]++, 1036)));
        }
      }
      EXPECT_EQ(batch.flush().sent, 2 * kPackets);
      stage.expect_all({0, 1});
    }
    EXPECT_EQ(stage.sender->counters().forwarded_packets, 4 * kPackets);
    EXPECT_EQ(stage.sender->counters().forward_failures, 0U);
  });
}

TEST(UdpGroup, gives_connection_management_to_anybody) {
  in_own_network([] {
    const SlotsFolder folder;
    std::vector<std::unique_ptr<UdpEndpoint>> endpoints;
    for (uint32_t slot = 0; slot < 3; ++slot) {
      endpoints.push_back(folder.open(slot));
    }
    std::array<uint32_t, 3> got{};
    UdpBatch batch(*endpoints[0]);
    uint32_t sent = 0;
    // One member that does not answer costs a repetition, not the connection.
    EXPECT_TRUE(wait_until([&] {
      EXPECT_TRUE(put(batch, ipv6_path(), numbered_packet(1, sent++, 280)));
      EXPECT_EQ(batch.flush().sent, 1U);
      for (size_t i = 0; i < 3; ++i) {
        got[i] += static_cast<uint32_t>(endpoints[i]->receive([](const UdpEndpoint::Arrived&) {}, 16));
      }
      return got[0] > 0 && got[1] > 0 && got[2] > 0;
    }));
    for (size_t i = 0; i < 3; ++i) {
      got[i] += static_cast<uint32_t>(drain(*endpoints[i]));
    }
    EXPECT_EQ(got[0] + got[1] + got[2], sent);
  });
}

TEST(UdpGroup, is_left_alone_by_a_forked_child) {
  in_own_network([] {
    const SlotsFolder folder;
    auto endpoint = folder.open(3);
    const auto other = folder.open(4);
    Child orderly([&] {
      endpoint->abandon_after_fork();
      endpoint.reset();
      return 0;
    });
    EXPECT_EQ(orderly.wait(), 0);
    Child careless([&] {
      endpoint.reset();
      return 0;
    });
    EXPECT_EQ(careless.wait(), 0);
    for (uint32_t i = 0; i < 10; ++i) {
      send_numbered(*other, ipv4_path(), 3, i);
      send_numbered(*endpoint, ipv6_path(), 4, i);
    }
    EXPECT_EQ(receive_packets(*endpoint, 10).size(), 10U);
    EXPECT_EQ(receive_packets(*other, 10).size(), 10U);
    EXPECT_EQ(endpoint->counters().forwarded_packets + other->counters().forwarded_packets, 0U);
  });
}

}  // namespace
}  // namespace ringbolt::link
