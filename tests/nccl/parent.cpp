#include "parent.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "place.h"

namespace ringbolt::test {
namespace {

constexpr uint64_t kMostNs = 1'000'000;  // of a call, where a case has a limit for calls
constexpr int kMostPlays = 2;

constexpr bool is_once(Call call) { return call == Call::init || call == Call::devices || call == Call::finalize; }

constexpr double kFarewellS = 2.0;  // for the other ranks to say something too, once one has failed

[[noreturn]] void live(int id, int round, const Case& played, const Options& options, Board& board, int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // also when the parent is killed, no rank stays behind
  Packet last{.header = {.kind = Packet::done}};
  Rank rank(id, round, options, board, socket);
  if (options.is_verbose) {
    Plugin::be_verbose(id);
  }
  try {
    settle_in(id, options);
    if (!played.loads_itself) {
      rank.load();
    }
    played.run(rank);
    rank.unload();
  } catch (const Late& error) {
    last = {.header = {.kind = Packet::late}, .text = error.what()};
  } catch (const std::exception& error) {
    last = {.header = {.kind = Packet::failed}, .text = error.what()};
  }
  send_packet(socket, last);
  if (last.header.kind != Packet::done) {
    _exit(1);  // threads may hang in the plugin
  }
  std::exit(0);  // with what the plugin has to do at exit: it must not crash there
}

/// The processes of one round of a case. Its destructor ends what is left of them, by their numbers.
class Round {
 public:
  Round(const Case& played, int number, const Options& options, Outcome& outcome)
      : case_(played), number_(number), options_(options), outcome_(outcome) {}

  ~Round() {
    for (Child& child : children_) {
      if (child.pid > 0) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
      }
      close(child.socket);
    }
    if (boards_ != nullptr) {
      munmap(boards_, bytes_of_boards());
    }
  }
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  void play() {
    void* const shared = mmap(nullptr, bytes_of_boards(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
      throw Failure(std::string("mmap: ") + std::strerror(errno));
    }
    boards_ = static_cast<Board*>(shared);  // zeros are what all its members start with
    fork_ranks();
    const double factor = options_.is_slow ? 3.0 : 1.0;
    const double limit_s = (case_.limit_s + (case_.takes_seconds ? options_.seconds : 0)) * factor;
    const uint64_t begin = now_ns();
    uint64_t failed = 0;
    while (!is_over()) {
      serve();
      show_rates(begin);
      if (!outcome_.failure.empty() && failed == 0) {
        failed = now_ns();
      }
      if (failed != 0 && seconds_since(failed) > kFarewellS) {
        return;
      }
      if (failed == 0 && seconds_since(begin) > limit_s) {
        complain("hangs after " + std::to_string(static_cast<int>(limit_s)) + " s: " + where_all_are());
        return;
      }
    }
  }

  /// The longest call of each kind over all ranks, in nanoseconds.
  [[nodiscard]] uint64_t longest(size_t call) const { return most_of(&Board::longest_ns, call); }

  /// How calls of this kind took longer than the case's limit; empty: they did not.
  [[nodiscard]] std::string excess(size_t call, CallLimit limit) const {
    const bool by_clock = limit == CallLimit::clock;
    const uint64_t most = most_of(by_clock ? &Board::longest_ns : &Board::longest_processor_ns, call);
    std::array<char, 160> text{};
    if (most >= kMostNs) {
      std::snprintf(text.data(), text.size(), "%s took %.3f ms%s, more than 1", kCallNames[call],
                    static_cast<double>(most) * 1e-6, by_clock ? " (--slow lets that pass)" : " of a processor");
    }
    return text.data();
  }

  /// Likewise how they slept, which no call may.
  [[nodiscard]] std::string sleeping(size_t call) const {
    const uint64_t n_slept = most_of(&Board::sleeps, call);
    std::array<char, 160> text{};
    if (n_slept > 0) {
      std::snprintf(text.data(), text.size(), "%s slept %llu times in %llu calls", kCallNames[call],
                    static_cast<unsigned long long>(n_slept),
                    static_cast<unsigned long long>(most_of(&Board::calls, call)));
    }
    return text.data();
  }

 private:
  struct Child {
    pid_t pid = -1;  ///< -1 once it is reaped
    int socket = -1;
    bool is_done = false;    ///< the case is over for it
    bool is_struck = false;  ///< it was killed or stopped on purpose
    bool waits = false;
    std::deque<Packet> outbox{};  ///< a rank that does not read must not hold up the parent
  };

  /// The most of any rank.
  [[nodiscard]] uint64_t most_of(std::array<std::atomic<uint64_t>, kCalls> Board::*counts, size_t call) const {
    uint64_t most = 0;
    for (size_t i = 0; i < children_.size(); ++i) {
      most = std::max(most, (boards_[i].*counts)[call].load());
    }
    return most;
  }

  [[nodiscard]] size_t bytes_of_boards() const { return sizeof(Board) * static_cast<size_t>(options_.ranks); }

  /// Before anything of the plugin is loaded: whatever it starts, it starts in the ranks.
  void fork_ranks() {
    std::fflush(nullptr);
    for (int id = 0; id < options_.ranks; ++id) {
      std::array<int, 2> pair{};
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
        throw Failure(std::string("socketpair: ") + std::strerror(errno));
      }
      const pid_t pid = fork();
      if (pid == 0) {
        for (const Child& other : children_) {
          close(other.socket);
        }
        close(pair[0]);
        live(id, number_, case_, options_, boards_[id], pair[1]);
      }
      close(pair[1]);
      children_.push_back({.pid = pid, .socket = pair[0]});
      if (pid < 0) {
        throw Failure(std::string("fork: ") + std::strerror(errno));
      }
    }
  }

  [[nodiscard]] bool is_over() const {
    return std::all_of(children_.begin(), children_.end(),
                       [](const Child& child) { return child.pid < 0 || child.is_struck; });
  }

  /// Listens for a hundredth of a second at most, so that deaths and hangs are seen in time.
  void serve() {
    std::vector<pollfd> files;
    for (const Child& child : children_) {
      const short wanted = static_cast<short>(POLLIN | (child.outbox.empty() ? 0 : POLLOUT));
      files.push_back({.fd = child.pid > 0 && !child.is_done ? child.socket : -1, .events = wanted, .revents = 0});
    }
    poll(files.data(), files.size(), 10);
    for (size_t i = 0; i < files.size(); ++i) {
      if ((files[i].revents & (POLLIN | POLLHUP)) != 0) {
        hear(i);
      }
      if ((files[i].revents & POLLOUT) != 0) {
        send_packet(children_[i].socket, children_[i].outbox.front());
        children_[i].outbox.pop_front();
      }
      reap(i);
    }
  }

  void hear(size_t from) {
    Packet packet;
    Child& child = children_[from];
    if (!receive_packet(child.socket, packet)) {
      child.is_done = true;  // what it died of comes with its status
      release_if_all_wait();
      return;
    }
    switch (packet.header.kind) {
      case Packet::mail: {
        Child& to = children_.at(static_cast<size_t>(packet.header.rank));
        packet.header.rank = static_cast<int>(from);
        to.outbox.push_back(std::move(packet));
        break;
      }
      case Packet::strike:
        victim_ = packet.header.rank;
        signal_ = packet.header.signal;
        [[fallthrough]];
      case Packet::barrier:
        child.waits = true;
        release_if_all_wait();
        break;
      case Packet::note:
        if (std::find(outcome_.notes.begin(), outcome_.notes.end(), packet.text) == outcome_.notes.end()) {
          outcome_.notes.push_back(packet.text);
        }
        break;
      case Packet::row:
        outcome_.rows.push_back(packet.text);
        break;
      case Packet::late:
        outcome_.is_late = outcome_.is_late || outcome_.failure.empty();
        [[fallthrough]];
      case Packet::failed:
        complain("rank " + std::to_string(from) + ": " + packet.text);
        [[fallthrough]];
      case Packet::done:
        child.is_done = true;
        release_if_all_wait();
        break;
      case Packet::doomed:
        child.is_struck = true;
        release_if_all_wait();
        break;
      case Packet::go:
        break;
    }
  }

  /// Ranks that ended, died or were struck are not waited for; a strike comes just before the release.
  void release_if_all_wait() {
    bool any = false;
    for (size_t i = 0; i < children_.size(); ++i) {
      const Child& child = children_[i];
      const bool counts = !child.is_done && !child.is_struck && static_cast<int>(i) != victim_;
      if (counts && !child.waits) {
        return;
      }
      any = any || counts;
    }
    if (!any) {
      return;
    }
    if (victim_ >= 0) {
      Child& victim = children_.at(static_cast<size_t>(victim_));
      victim.is_struck = true;
      if (victim.pid > 0) {
        kill(victim.pid, signal_);
      }
      victim_ = -1;
    }
    for (Child& child : children_) {
      if (child.waits) {
        child.waits = false;
        child.outbox.push_back({.header = {.kind = Packet::go}});
      }
    }
  }

  /// A rank must end by itself and with zero, also after it has said that it is done.
  void reap(size_t i) {
    Child& child = children_[i];
    int status = 0;
    if (child.pid < 0 || waitpid(child.pid, &status, WNOHANG) != child.pid) {
      return;
    }
    child.pid = -1;
    const bool was_done = child.is_done;
    while (!child.is_done) {
      hear(i);  // what it said last
    }
    if (child.is_struck) {
      return;
    }
    const std::string when = was_done ? " at its end" : std::string(" in ") + where(i);
    if (WIFSIGNALED(status)) {
      complain("rank " + std::to_string(i) + " died of signal " + std::to_string(WTERMSIG(status)) + when);
    } else if (WEXITSTATUS(status) != 0 && outcome_.failure.empty()) {
      complain("rank " + std::to_string(i) + " ended with exit code " + std::to_string(WEXITSTATUS(status)) + when);
    }
  }

  /// From memory that outlives the rank: its threads write there before each call.
  [[nodiscard]] std::string where(size_t rank) const {
    std::string text;
    for (size_t i = 0; i < kSeats; ++i) {
      const Seat& seat = boards_[rank].seats[i];
      const Call call = seat.call;
      const char* const step = seat.step;
      if (call != Call::none) {
        std::array<char, 32> since{};
        std::snprintf(since.data(), since.size(), " for %.3f s", seconds_since(seat.since_ns));
        text += std::string(text.empty() ? "" : ", ") + kSeatNames[i] + " thread in " + name_of(call) + since.data();
      }
      if (step != nullptr) {
        text += std::string(text.empty() ? "" : ", ") + kSeatNames[i] + " thread at '" + step + "'";
      }
    }
    return text.empty() ? "no call" : text;
  }

  [[nodiscard]] std::string where_all_are() const {
    std::string text;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (children_[i].pid > 0 && !children_[i].is_struck) {
        text += (text.empty() ? "rank " : "; rank ") + std::to_string(i) + ": " + where(i) +
                (children_[i].waits ? " (waits for the others)" : "");
      }
    }
    return text;
  }

  void complain(const std::string& text) { outcome_.failure += (outcome_.failure.empty() ? "" : "; ") + text; }

  /// Once a second, of the case that runs for long: what came by each pair. On stderr, where it is seen at once.
  void show_rates(uint64_t begin) {
    if (std::strcmp(case_.name, "stream") != 0 || seconds_since(begin) < static_cast<double>(shown_) + 1) {
      return;
    }
    ++shown_;
    seen_.resize(children_.size() * children_.size());
    std::string line;
    for (size_t from = 0; from < children_.size(); ++from) {
      for (size_t to = 0; to < children_.size(); ++to) {
        const uint64_t bytes = boards_[to].received_bytes[from];
        uint64_t& before = seen_[from * children_.size() + to];
        std::array<char, 64> text{};
        std::snprintf(text.data(), text.size(), "  %zu>%zu %.3f", from, to, static_cast<double>(bytes - before) * 1e-9);
        before = bytes;
        line += from == to ? "" : text.data();
      }
    }
    std::fprintf(stderr, "stream %3d s, GB/s:%s\n", shown_, line.c_str());
  }

  const Case& case_;
  int number_;
  const Options& options_;
  Outcome& outcome_;
  Board* boards_ = nullptr;
  std::vector<Child> children_;
  int victim_ = -1;
  int signal_ = 0;
  int shown_ = 0;
  std::vector<uint64_t> seen_;
};

/// Which calls took longest, and how long.
std::string longest_calls(const std::array<uint64_t, kCalls>& longest) {
  std::string text;
  for (size_t i = 1; i < kCalls; ++i) {
    const Call call = static_cast<Call>(i);
    // What happens once per process or communicator says nothing of the rest.
    if (longest[i] == 0 || is_once(call)) {
      continue;
    }
    std::array<char, 48> one{};
    std::snprintf(one.data(), one.size(), "%s%s %.3f", text.empty() ? "longest ms: " : " ", name_of(call),
                  static_cast<double>(longest[i]) * 1e-6);
    text += one.data();
  }
  return text;
}

CallLimit limit_of(const Case& played, const Options& options) {
  // A rank on a cluster has a thread for its relays, which polls as the rank does.
  const auto threads = static_cast<unsigned>(options.ranks) * (options.nodes > 0 ? 2 : 1);
  const bool is_crowded = threads > std::thread::hardware_concurrency();
  if (played.limit == CallLimit::clock && options.is_slow) {
    return CallLimit::none;
  }
  return played.limit == CallLimit::clock && is_crowded ? CallLimit::processor : played.limit;
}

Outcome play_once(const Case& played, const Options& options) {
  Outcome outcome;
  const uint64_t begin = now_ns();
  std::array<uint64_t, kCalls> longest{};
  const CallLimit limit = limit_of(played, options);
  for (int number = 0; number < played.rounds && outcome.failure.empty(); ++number) {
    try {
      Round round(played, number, options, outcome);
      round.play();
      for (size_t i = 0; i < kCalls; ++i) {
        longest[i] = std::max(longest[i], round.longest(i));
        const bool is_limited = limit != CallLimit::none && !is_once(static_cast<Call>(i)) && outcome.failure.empty();
        if (std::string text = is_limited ? round.excess(i, limit) : ""; !text.empty()) {
          outcome.excesses.insert_or_assign(i, std::move(text));
        }
        if (std::string text = is_limited && limit == CallLimit::processor ? round.sleeping(i) : ""; !text.empty()) {
          outcome.excesses.insert_or_assign(kCalls + i, std::move(text));
        }
      }
      if (played.rounds > 1 && !outcome.failure.empty()) {
        outcome.failure += " (round " + std::to_string(number) + ")";
      }
    } catch (const std::exception& error) {
      outcome.failure = error.what();
    }
  }
  const std::string calls = longest_calls(longest);
  if (!calls.empty()) {
    outcome.notes.push_back(calls);
  }
  outcome.seconds = seconds_since(begin);
  return outcome;
}

}  // namespace

Outcome play(const Case& played, const Options& options) {
  Outcome outcome = play_once(played, options);
  if (outcome.is_late) {
    const std::string first = outcome.failure;
    outcome = play_once(played, options);
    outcome.notes.push_back("the second time, after: " + first);
  }
  // A kind of call that is long by itself is so in both plays. What a machine does beside us makes a call of another
  // kind long in the next one: so a kind counts by its quicker play. To sleep is nothing that a machine does: a call
  // that does so in the second play, whichever it is, has failed.
  for (int plays = 1; plays < kMostPlays && outcome.failure.empty() && !outcome.excesses.empty(); ++plays) {
    Outcome next = play_once(played, options);
    next.notes.insert(next.notes.begin(), outcome.notes.begin(), outcome.notes.end());
    for (const auto& [call, text] : outcome.excesses) {
      next.notes.push_back("in play " + std::to_string(plays) + " " + text);
    }
    std::erase_if(next.excesses, [&](const auto& excess) {
      return excess.first < kCalls && !outcome.excesses.contains(excess.first);
    });
    outcome = std::move(next);
  }
  for (const auto& [call, text] : outcome.excesses) {
    outcome.failure +=
        (outcome.failure.empty() ? "also in the last of " + std::to_string(kMostPlays) + " plays: " : "; ") + text;
  }
  return outcome;
}

}  // namespace ringbolt::test
