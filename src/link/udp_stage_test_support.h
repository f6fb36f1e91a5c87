#pragma once

#include <sys/prctl.h>

#include "link/udp_test_support.h"

/// Several processes behind one port, for the tests of how they share it.
namespace ringbolt::link::testing {

inline constexpr size_t kMostMembers = 8;
inline constexpr size_t kMostPackets = 4096;

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

inline bool wait_until(const std::function<bool()>& is_done) {
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
inline std::unique_ptr<Child> member(const SlotsFolder& folder, const SharedBoard& board, uint32_t number) {
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

}  // namespace ringbolt::link::testing
