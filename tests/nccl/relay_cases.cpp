#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

/// What a relay needs of memory for one circuit that passes it, however long its messages are: 34 frames of 64 KiB and
/// 128 B, where the window is 16; receives for answers, and the rings of two queue pairs. On one host our device also
/// sees the 16 frames that the sender keeps, and more of its neighbours' memory is mapped than is looked at. docs/nccl.md.
constexpr size_t kMostPerCircuit = size_t{3584} << 10U;
constexpr size_t kMostMappedPerCircuit = size_t{7} << 20U;
/// Of all circuits together: what the heap rounds up, and code that had not been run before.
constexpr size_t kMostInAll = size_t{3} << 20U;
/// Of each connection so many at least are handed to the plugin before their receiver posts anything.
constexpr uint64_t kMessages = 2;
constexpr double kSlowS = 0.7;

/// In bytes, of this process.
struct Memory {
  size_t peak = 0;    ///< resident, since reset_peak()
  size_t shared = 0;  ///< mapped together with other processes, as memory is that devices work with
};

void reset_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

Memory take_memory() {
  Memory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      memory.peak = std::stoul(line.substr(6)) << 10U;
    }
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    std::array<char, 5> mode{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, mode.data()) == 3 && mode[3] == 's') {
      memory.shared += end - begin;
    }
  }
  return memory;
}

/// Messages of one size by all links at once, both ways, from and to the same memory: it is not its, but the relay's that
/// is looked at. At first nobody receives, and all send what they may.
class Flood {
 public:
  Flood(Rank& rank, const std::vector<Link>& links, size_t bytes)
      : rank_(rank), links_(links), bytes_(bytes), out_(bytes), in_(bytes), ways_(links.size()) {
    fill(out_.data(), bytes, {.sender = rank.id()});
    for (size_t i = 0; i < links.size(); ++i) {
      expect(rank.plugin().reg_mr(links[i].send, out_.data(), bytes, abi::kHostMemory, &ways_[i].out), "regMr");
      expect(rank.plugin().reg_mr(links[i].receive, in_.data(), bytes, abi::kHostMemory, &ways_[i].in), "regMr");
    }
  }

  /// Nobody receives: all send what they may.
  void hold() {
    const uint64_t begin = now_ns();
    while (seconds_since(begin) < kSlowS) {
      if (!step(false)) {
        yield_now();
      }
    }
    if (n_sent_ == links_.size() * kMessages) {
      throw Failure("all has been sent, though nobody receives");
    }
  }

  void drain() {
    while (n_sent_ + n_received_ < 2 * links_.size() * kMessages) {
      if (!step(true)) {
        yield_now();
      }
    }
    if (const auto wrong = first_wrong(in_.data(), bytes_, {.sender = links_[0].peer})) {
      throw Failure("byte " + std::to_string(*wrong) + " of " + std::to_string(bytes_) + " is wrong");
    }
  }

  void end() {
    for (size_t i = 0; i < links_.size(); ++i) {
      expect(rank_.plugin().dereg_mr(links_[i].send, ways_[i].out), "deregMr");
      expect(rank_.plugin().dereg_mr(links_[i].receive, ways_[i].in), "deregMr");
    }
  }

 private:
  /// Of one link: what is registered, what is under way, and how many there were.
  struct Way {
    void* out = nullptr;
    void* in = nullptr;
    std::array<void*, kMessages> sends{};
    void* receive = nullptr;
    uint64_t n_posted = 0;
    uint64_t n_receives = 0;
  };

  bool step(bool receives) {
    bool has_moved = false;
    for (size_t i = 0; i < links_.size(); ++i) {
      has_moved = send(links_[i], ways_[i]) || has_moved;
      has_moved = (receives && receive(links_[i], ways_[i])) || has_moved;
    }
    return has_moved;
  }

  bool send(const Link& link, Way& way) {
    bool has_moved = false;
    if (way.n_posted < kMessages) {
      void*& request = way.sends[way.n_posted];
      expect(rank_.plugin().isend(link.send, out_.data(), bytes_, 0, way.out, &request), "isend");
      way.n_posted += request != nullptr ? 1 : 0;
    }
    for (void*& request : way.sends) {
      if (request != nullptr && is_done(request)) {
        request = nullptr;
        ++n_sent_;
        has_moved = true;
      }
    }
    return has_moved;
  }

  bool receive(const Link& link, Way& way) {
    if (way.receive == nullptr && way.n_receives < kMessages) {
      void* data = in_.data();
      size_t bytes = bytes_;
      int tag = 0;
      expect(rank_.plugin().irecv(link.receive, 1, &data, &bytes, &tag, &way.in, &way.receive), "irecv");
      way.n_receives += way.receive != nullptr ? 1 : 0;
    }
    if (way.receive != nullptr && is_done(way.receive)) {
      way.receive = nullptr;
      ++n_received_;
      return true;
    }
    return false;
  }

  bool is_done(void* request) {
    int done = 0;
    std::array<int, abi::kMostSizes> sizes{};
    expect(rank_.plugin().test(request, &done, sizes.data()), "test");
    return done == 1;
  }

  Rank& rank_;
  const std::vector<Link>& links_;
  const size_t bytes_;
  Buffer out_;
  Buffer in_;
  std::vector<Way> ways_;
  uint64_t n_sent_ = 0;
  uint64_t n_received_ = 0;
};

/// For a line of three: its ends exchange messages, and the one between relays them.
void relay_memory(Rank& rank) {
  const int last = rank.size() - 1;
  if (last != 2) {
    throw Failure("needs three ranks");
  }
  const auto n_circuits = 2 * static_cast<size_t>(rank.options().channels);
  const bool is_end = rank.id() != 1;
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);  // all have met, and have been of use to each other
  greet(rank, links);
  rank.barrier();
  reset_peak();
  const Memory before = take_memory();
  rank.barrier();
  if (is_end) {
    std::vector<Link> flooded = open_links(rank, {last - rank.id()}, rank.options().channels);
    Flood flood(rank, flooded, static_cast<size_t>(rank.options().bytes));
    rank.step("flood");
    const auto meet = [&] {
      rank.post(last - rank.id(), "here");
      rank.take(last - rank.id());
    };
    meet();
    rank.progress().run([&] { flood.hold(); });
    meet();
    rank.progress().run([&] { flood.drain(); });
    flood.end();
    meet();
    rank.barrier();
    close_links(rank, flooded);
  } else {
    rank.barrier();  // waits until all has arrived
    const Memory after = take_memory();
    const size_t peak = after.peak - std::min(after.peak, before.peak);
    const size_t shared = after.shared - std::min(after.shared, before.shared);
    const size_t most = kMostInAll + n_circuits * kMostPerCircuit;
    const size_t most_shared = kMostInAll + n_circuits * kMostMappedPerCircuit;
    const std::string text = std::to_string(n_circuits) + " circuits, messages of " +
                             std::to_string(rank.options().bytes) + " bytes: resident " + std::to_string(peak) +
                             " more at most, shared " + std::to_string(shared) + " more";
    rank.row(text);
    if (peak > most || shared > most_shared) {
      throw Failure("the relay: " + text + ", where " + std::to_string(most) + " and " + std::to_string(most_shared) +
                    " are allowed");
    }
    if (peak < n_circuits * (size_t{1} << 20U)) {
      throw Failure("the relay has relayed nothing: " + text);
    }
  }
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> relay_cases() {
  return {{.name = "relay_memory",
           .asserts = "of three ranks in a line the middle one relays --channels both ways, of messages of --bytes that nobody "
                      "receives at first, from memory that does not depend on --bytes",
           .run = relay_memory,
           .limit_s = 60}};
}

}  // namespace ringbolt::test
