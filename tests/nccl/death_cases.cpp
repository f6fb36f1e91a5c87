#include <algorithm>
#include <array>
#include <csignal>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

/// The last one: with two ranks too there is one left to complain.
int victim_of(const Rank& rank) { return rank.size() - 1; }

/// One comm, one way, with a few requests under way that no peer ever completes.
struct Pending {
  void* comm = nullptr;
  bool is_send = false;
  Buffer buffer{kDepth * kBytes};
  void* region = nullptr;
  std::vector<void*> requests{};

  static constexpr size_t kDepth = 4;
  static constexpr size_t kBytes = 1U << 20U;

  /// Data calls of the progress thread. Returns the code.
  int start_one(Rank& rank, int peer) {
    void* data = buffer.data() + requests.size() % kDepth * kBytes;
    void* request = nullptr;
    size_t bytes = kBytes;
    const int code = is_send ? rank.plugin().isend(comm, data, bytes, rank.id(), region, &request)
                             : rank.plugin().irecv(comm, 1, &data, &bytes, &peer, &region, &request);
    if (code == abi::kSuccess && request != nullptr) {
      requests.push_back(request);
    }
    return code;
  }

  /// Tests all that is under way until one fails; done ones go.
  int test_all(Rank& rank) {
    for (auto request = requests.begin(); request != requests.end();) {
      int done = 0;
      std::array<int, abi::kMostSizes> sizes{};
      const int code = rank.plugin().test(*request, &done, sizes.data());
      if (code != abi::kSuccess) {
        requests.erase(request);  // what has failed is not tested again
        return code;
      }
      request = done == 1 ? requests.erase(request) : request + 1;
    }
    return abi::kSuccess;
  }
};

/// Until `call()` says that the peer is lost. Throws Failure on any other error, or when it takes too long.
template <typename Function>
double until_lost(Rank& rank, uint64_t begin, double limit_s, const char* what, Function&& call) {
  while (true) {
    const int code = call();
    const double taken = seconds_since(begin);
    if (code == abi::kRemoteError) {
      return taken;
    }
    expect(code, std::string(what) + " to or from the lost rank " + std::to_string(victim_of(rank)));
    if (taken > limit_s) {
      throw Late(std::string(what) + " says nothing of the lost peer after " + std::to_string(taken) + " s");
    }
    sleep_s(0.0005);
  }
}

/// What was under way fails first, then whatever is begun anew.
double lose(Rank& rank, Pending& pending, uint64_t begin, double limit_s) {
  double slowest = 0;
  while (!pending.requests.empty()) {
    slowest = std::max(slowest, until_lost(rank, begin, limit_s, "test", [&] {
                         // Sends may still be done: their data had left before.
                         const int code = pending.test_all(rank);
                         return pending.requests.empty() ? abi::kRemoteError : code;
                       }));
  }
  const char* const what = pending.is_send ? "isend" : "irecv";
  return std::max(slowest, until_lost(rank, begin, limit_s, what, [&] {
                    const int code = pending.requests.size() < Pending::kDepth
                                         ? pending.start_one(rank, victim_of(rank))
                                         : abi::kSuccess;
                    // One may be taken before the loss is known; then its test says it.
                    return code == abi::kSuccess ? pending.test_all(rank) : code;
                  }));
}

std::vector<Pending> pend(Rank& rank, const std::vector<Link>& links, bool receives, bool sends) {
  std::vector<Pending> all;
  for (const Link& link : links) {
    // Survivors have requests under way with the victim only; the victim has them with all.
    if (link.peer != victim_of(rank) && rank.id() != victim_of(rank)) {
      continue;
    }
    for (const bool is_send : {false, true}) {
      if (!(is_send ? sends : receives)) {
        continue;
      }
      Pending& pending = all.emplace_back();
      pending.comm = is_send ? link.send : link.receive;
      pending.is_send = is_send;
      expect(rank.plugin().reg_mr(pending.comm, pending.buffer.data(), pending.buffer.bytes(), abi::kHostMemory,
                                  &pending.region),
             "regMr");
      rank.progress().run([&] {
        for (size_t i = 0; i < Pending::kDepth; ++i) {
          expect(pending.start_one(rank, link.peer), is_send ? "isend" : "irecv");
        }
        expect(pending.test_all(rank), "test");
      });
    }
  }
  return all;
}

void lose_peer(Rank& rank, int signal, bool receives, bool sends) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  greet(rank, links);
  rank.barrier();
  std::vector<Pending> all = pend(rank, links, receives, sends);
  rank.barrier();
  if (rank.id() == victim_of(rank)) {
    rank.wait_for_the_end();
  }
  rank.step("strike");
  rank.strike(victim_of(rank), signal);
  const uint64_t begin = now_ns();
  rank.step("wait for the loss to be told");
  double slowest = 0;
  rank.progress().run([&] {
    for (Pending& pending : all) {
      slowest = std::max(slowest, lose(rank, pending, begin, rank.patience()));
    }
  });
  if (rank.id() == 0) {
    rank.note("rank 0 knew after " + std::to_string(slowest) + " s");
  }
  // The loss of one must not reach those that have nothing to do with it.
  std::vector<Link> alive;
  std::copy_if(links.begin(), links.end(), std::back_inserter(alive),
               [&](const Link& link) { return link.peer != victim_of(rank); });
  greet(rank, alive);
  rank.barrier();
  for (Pending& pending : all) {
    promptly("deregMr", [&] { return rank.plugin().dereg_mr(pending.comm, pending.region); });
  }
  close_links(rank, links);
}

void killed_receive(Rank& rank) { lose_peer(rank, SIGKILL, true, false); }
void killed_send(Rank& rank) { lose_peer(rank, SIGKILL, false, true); }
void stopped(Rank& rank) { lose_peer(rank, SIGSTOP, true, true); }

/// A victim dies after so many calls of connect and accept.
void killed_connect(Rank& rank) {
  constexpr std::array<int, 6> kCallsBefore = {0, 1, 2, 5, 20, 100};
  std::vector<Link> links = listen_for(rank, peers_of(rank), 1);
  exchange_handles(rank, links);
  rank.barrier();
  const uint64_t begin = now_ns();
  if (rank.id() == victim_of(rank)) {
    for (int call = 0; call < kCallsBefore.at(static_cast<size_t>(rank.round())); ++call) {
      for (Link& link : links) {
        if (link.send == nullptr) {
          expect(rank.plugin().connect(rank.context(), 0, link.theirs, &link.send), "connect");
        }
        if (link.receive == nullptr) {
          expect(rank.plugin().accept(link.listener, &link.receive), "accept");
        }
      }
      sleep_s(0.0001);  // the later moments then lie in the middle of the handshakes
    }
    rank.die();
  }
  rank.step("connect to a rank that dies");
  Link& lost = links.back();
  const double limit_s = rank.patience() + 0.5;  // the half is the victim's, who had calls to make
  bool is_told = false;
  while (!is_told && lost.send == nullptr) {
    const int code = rank.plugin().connect(rank.context(), 0, lost.theirs, &lost.send);
    is_told = code == abi::kRemoteError;
    if (!is_told) {
      expect(code, "connect to a rank that dies");
    }
    if (lost.receive == nullptr) {
      const int accepted = rank.plugin().accept(lost.listener, &lost.receive);
      expect(accepted == abi::kRemoteError ? 0 : accepted, "accept from a rank that dies");
    }
    if (seconds_since(begin) > limit_s) {
      throw Late("connect says nothing of a peer that is dead for " + std::to_string(seconds_since(begin)) + " s");
    }
    yield_now();
  }
  // It may have connected in its last moments: then the comm has to say it.
  if (!is_told) {
    Pending pending{.comm = lost.send, .is_send = true};
    expect(rank.plugin().reg_mr(lost.send, pending.buffer.data(), pending.buffer.bytes(), abi::kHostMemory,
                                &pending.region),
           "regMr");
    rank.progress().run([&] { lose(rank, pending, begin, limit_s); });
    expect(rank.plugin().dereg_mr(lost.send, pending.region), "deregMr");
  }
  std::vector<Link> dead = {lost};
  links.pop_back();
  close_links(rank, dead);
  // The survivors were listening to each other all the time.
  establish(rank, links, {});
  greet(rank, links);
  rank.barrier();
  close_links(rank, links);
}

/// The peer lives, but its application calls nothing: no reason to give up.
void idle(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  Stream stream{.sizes = {5000}, .count = 4, .depth = 4};
  std::vector<Receiver> receivers;
  std::vector<Sender> senders;
  for (const Link& link : links) {
    receivers.emplace_back(rank, link, stream);
    senders.emplace_back(rank, link, stream);
  }
  rank.step("wait for messages that come late");
  rank.progress().run([&] {
    const uint64_t begin = now_ns();
    // Odd ranks don't even look in the meantime.
    for (; seconds_since(begin) < 5; sleep_s(0.001)) {
      for (Receiver& receiver : receivers) {
        if (rank.id() % 2 == 0) {
          receiver.step();
        }
        if (receiver.completed() > 0) {
          throw Failure("a receive is done that nobody sent to");
        }
      }
    }
  });
  rank.barrier();
  rank.progress().run([&] { drive(senders, receivers, 10); });
  for (size_t i = 0; i < links.size(); ++i) {
    senders[i].end();
    receivers[i].end();
  }
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> death_cases() {
  return {{.name = "killed_receive",
           .asserts = "kill -9 of a peer: posted receives fail with code 6 within 1 s",
           .run = killed_receive},
          {.name = "killed_send",
           .asserts = "kill -9 of a peer: sends under way fail with code 6 within 1 s",
           .run = killed_send},
          {.name = "killed_connect",
           .asserts = "kill -9 of a peer during connect, at six moments",
           .run = killed_connect,
           .rounds = 6},
          {.name = "stopped", .asserts = "a peer that is stopped is lost like a dead one", .run = stopped},
          {.name = "idle", .asserts = "a receive whose peer lives waits 5 s without an error", .run = idle}};
}

}  // namespace ringbolt::test
