#include <unistd.h>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

/// From the cut that must come within --seconds.
constexpr double kMostSilentS = 15;

/// What ends a stream that goes by `sender` and `receiver`, where they are; empty: nothing did in `seconds`.
std::string end_of_stream(Sender* sender, Receiver* receiver, double seconds) {
  const uint64_t begin = now_ns();
  try {
    while (seconds_since(begin) < seconds) {
      const bool has_sent = sender != nullptr && sender->step();
      if (!(receiver != nullptr && receiver->step()) && !has_sent) {
        yield_now();
      }
    }
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

/// A test cuts the last way to the last rank meanwhile. No hang: whoever had messages under way is told with whom, by a
/// code that NCCL knows, and closing works all the same.
void sever(Rank& rank, bool is_one_way) {
  const int last = rank.size() - 1;
  const int peer = rank.id() == last ? 0 : last;
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  for (const Link& link : links) {
    rank.post(link.peer, "(pid " + std::to_string(getpid()) + ")");
  }
  std::string name;
  const Link* severed = nullptr;
  for (const Link& link : links) {
    const std::string text = rank.take(link.peer);
    if (link.peer == peer) {
      name = text;
      severed = &link;
    }
  }
  rank.barrier();
  rank.step("wait for the cut");
  if (rank.id() == 0 || rank.id() == last) {
    const Stream endless{.sizes = {1U << 20U, 65'537, 8}, .count = UINT64_MAX};
    Sender sender(rank, *severed, endless);
    Receiver receiver(rank, *severed, endless);
    std::string told;
    rank.progress().run(
        [&] { told = end_of_stream(is_one_way && rank.id() != 0 ? nullptr : &sender,
                                   is_one_way && rank.id() == 0 ? nullptr : &receiver,
                                   rank.options().seconds + kMostSilentS * rank.patience()); });
    const bool is_code_right =
        told.find("returned 2") != std::string::npos || told.find("returned 6") != std::string::npos;
    if (told.empty() || !is_code_right || told.find(name) == std::string::npos) {
      throw Failure(told.empty() ? "nothing was told of the severed peer"
                                 : "neither code 2 nor 6, or not of " + name + ": " + told);
    }
    rank.note("rank " + std::to_string(rank.id()) + " was told: " + told);
    promptly("deregMr", [&] {
      sender.end();
      receiver.end();
      return abi::kSuccess;
    });
  }
  rank.barrier();
  close_links(rank, links);
}

void severed(Rank& rank) { sever(rank, false); }
void severed_one_way(Rank& rank) { sever(rank, true); }

}  // namespace

std::vector<Case> cut_cases() {
  return {{.name = "severed",
           .asserts = "a cut of the last way, which a test makes within --seconds, is an error that names the peer",
           .run = severed,
           .limit_s = 40,
           .takes_seconds = true},
          {.name = "severed_one_way",
           .asserts = "as severed, where rank 0 only sends and the last one only receives",
           .run = severed_one_way,
           .limit_s = 40,
           .takes_seconds = true}};
}

}  // namespace ringbolt::test
