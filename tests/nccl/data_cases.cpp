#include <algorithm>
#include <cstring>

#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

// Nothing, one word, the edges of a line of 128 bytes, of pages and of NCCL's chunks.
const std::vector<size_t> kSizes = {0, 1, 8, 127, 128, 129, 4096, 65537, 524288, 4U << 20U};

void pipeline(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  run_streams(rank, links, {.sizes = kSizes, .count = 80, .depth = 8, .posted_more = 600}, 60);
  rank.barrier();
  close_links(rank, links);
}

/// Small ones overtake each other first, if any do.
void order(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  run_streams(rank, links, {.sizes = {8, 16, 40}, .count = static_cast<uint64_t>(rank.options().messages), .depth = 8},
              60);
  rank.barrier();
  close_links(rank, links);
}

/// Ranks 0 and 1; the others have nothing to do.
void channels(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = open_links(rank, {1 - rank.id()}, 64);
  run_streams(rank, links, {.sizes = {65536, 8, 4096, 70001}, .count = 16, .depth = 4}, 60);
  rank.barrier();
  close_links(rank, links);
}

void slow_receiver(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  constexpr size_t kMost = abi::kMostRequests;
  constexpr uint64_t kMessages = 300;
  const Stream stream{.sizes = {4096, 20000, 8}, .count = kMost, .depth = kMost};
  std::vector<Sender> senders;
  std::vector<Receiver> receivers;
  for (const Link& link : links) {
    receivers.emplace_back(rank, link, stream);
    senders.emplace_back(rank, link, Stream{.sizes = stream.sizes, .count = kMessages, .depth = kMessages});
  }
  rank.progress().run([&] {
    const uint64_t begin = now_ns();
    for (Receiver& receiver : receivers) {
      while (receiver.outstanding() < kMost) {
        if (!receiver.post(kMost) && seconds_since(begin) > 10) {
          throw Failure("only " + std::to_string(receiver.outstanding()) + " receives outstanding, NCCL may have 32");
        }
      }
    }
  });
  rank.barrier();
  size_t most = 0;
  uint64_t refusals = 0;
  rank.progress().run([&] {
    // All send what goes, and for half a second nobody posts anything more.
    const uint64_t begin = now_ns();
    while (seconds_since(begin) < 0.5) {
      for (Sender& sender : senders) {
        sender.step();
      }
      yield_now();
    }
    for (Receiver& receiver : receivers) {
      receiver.set_count(kMessages);
    }
    // Then one receive at a time, for a while, and in the end as many as go.
    while (std::any_of(receivers.begin(), receivers.end(),
                       [](const Receiver& receiver) { return receiver.completed() < 2 * kMost; })) {
      for (Receiver& receiver : receivers) {
        receiver.post(1);
        receiver.collect();
      }
      for (Sender& sender : senders) {
        if (!sender.is_done()) {
          sender.step();
        }
      }
      if (seconds_since(begin) > 40) {
        throw Failure("a slow receiver gets no messages");
      }
      yield_now();
    }
    drive(senders, receivers, 20);
    for (const Sender& sender : senders) {
      most = std::max(most, sender.most_outstanding());
      refusals += sender.refusals();
    }
  });
  for (Sender& sender : senders) {
    sender.end();
  }
  for (Receiver& receiver : receivers) {
    receiver.end();
  }
  rank.note("up to " + std::to_string(most) + " sends outstanding, " +
            (refusals > 0 ? "more refused" : "none refused"));
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> data_cases() {
  return {{.name = "pipeline",
           .asserts = "8 deep each way, all sizes, larger receives: bytes, sizes, order, canary",
           .run = pipeline,
           .limit_s = 60},
          {.name = "order",
           .asserts = "100000 (or --messages) small messages each way arrive in order",
           .run = order,
           .limit_s = 60},
          {.name = "channels", .asserts = "64 channels between two ranks carry their own messages", .run = channels},
          {.name = "slow_receiver",
           .asserts = "32 receives outstanding; sends are refused without error and arrive later",
           .run = slow_receiver}};
}

}  // namespace ringbolt::test
