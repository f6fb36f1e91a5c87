#include <algorithm>

#include "cases.h"
#include "census.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

constexpr int kSpareMappings = 6;  // the C library's own coming and going over a few turns

void fail_on_growth(const Census& before, int spare, const std::string& after) {
  if (const std::string grown = growth_since(before, spare); !grown.empty()) {
    throw Failure("left behind " + after + ": " + grown);
  }
}

/// Sends and receives are under way on all comms, of which some can complete and some cannot.
void close_busy(Rank& rank) {
  std::vector<Link> links = open_links(rank, peers_of(rank), 2);
  const size_t bytes = 1U << 20U;
  Buffer outgoing(bytes);
  Buffer incoming(4 * bytes);
  std::vector<void*> regions;
  for (const Link& link : links) {
    for (void* const comm : {link.send, link.receive}) {
      Buffer& buffer = comm == link.send ? outgoing : incoming;
      expect(rank.plugin().reg_mr(comm, buffer.data(), buffer.bytes(), abi::kHostMemory, &regions.emplace_back()),
             "regMr");
    }
  }
  rank.progress().run([&] {
    for (size_t i = 0; i < links.size(); ++i) {
      void* request = nullptr;
      for (int k = 0; k < 4; ++k) {
        void* data = incoming.data();
        size_t posted = bytes;
        int tag = links[i].peer;
        // Channel 1 sends what nobody receives, channel 0 also receives more than is sent.
        if (links[i].channel == 0) {
          expect(rank.plugin().irecv(links[i].receive, 1, &data, &posted, &tag, &regions[2 * i + 1], &request),
                 "irecv");
        }
        if (links[i].channel == 1 || k < 2) {
          expect(rank.plugin().isend(links[i].send, outgoing.data(), bytes, rank.id(), regions[2 * i], &request),
                 "isend");
        }
        if (int done = 0; request != nullptr) {
          std::array<int, abi::kMostSizes> sizes{};
          expect(rank.plugin().test(request, &done, sizes.data()), "test");
        }
      }
    }
  });
  rank.barrier();  // nobody has closed yet while others still make data calls
  rank.step("close with requests under way");
  for (size_t i = 0; i < links.size(); ++i) {
    promptly("deregMr", [&] { return rank.plugin().dereg_mr(links[i].send, regions[2 * i]); });
    promptly("deregMr", [&] { return rank.plugin().dereg_mr(links[i].receive, regions[2 * i + 1]); });
  }
  close_links(rank, links);
  rank.end_progress();
  // From here on nothing may come: this memory is the application's again.
  fill_canary(incoming.data(), incoming.bytes());
  sleep_s(0.05);
  if (const auto dead = first_dead(incoming.data(), incoming.bytes())) {
    throw Failure("byte " + std::to_string(*dead) + " of a receive buffer was written to after closeRecv");
  }
  rank.barrier();
}

/// By turns in one process: what a turn leaves adds up.
void close_in_flight(Rank& rank) {
  close_busy(rank);  // what is made once is made now
  rank.barrier();
  const Census before = take_census();
  for (int turn = 0; turn < 5; ++turn) {
    close_busy(rank);
  }
  rank.barrier();
  fail_on_growth(before, kSpareMappings, "by comms that were closed with requests under way");
}

/// Connections that are given up at all stages: the connector forgets them, the listener is closed.
void give_up(Rank& rank, int turn) {
  std::vector<Link> links = listen_for(rank, peers_of(rank), 2);
  exchange_handles(rank, links);
  rank.step("connect without being accepted");
  for (int call = 0; call < turn * 8; ++call) {
    for (Link& link : links) {
      if (link.send == nullptr) {
        expect(rank.plugin().connect(rank.context(), 0, link.theirs, &link.send), "connect");
      }
      if (link.receive == nullptr && turn % 2 == 1 && link.channel == 1) {
        expect(rank.plugin().accept(link.listener, &link.receive), "accept");
      }
    }
    sleep_s(0.0005);
  }
  rank.barrier();
  close_links(rank, links);
  rank.step("finalize and init");
  const uint64_t begin = now_ns();
  rank.renew_context();
  if (const double took = seconds_since(begin); took > 3 * rank.patience()) {  // 2 s for what was sent, at most
    throw Late("finalize and init took " + std::to_string(took) + " s");
  }
  rank.barrier();
}

void abort_connect(Rank& rank) {
  give_up(rank, 3);
  const Census before = take_census();
  for (int turn = 0; turn < 6; ++turn) {
    give_up(rank, turn);
  }
  rank.barrier();
  if (rank.plugin().has_finalize()) {  // else nothing ever tells the plugin that they are given up
    fail_on_growth(before, kSpareMappings, "by connections that were given up");
  }
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  greet(rank, links);
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> close_cases() {
  return {{.name = "close_in_flight",
           .asserts = "deregMr and close with requests under way: prompt, nothing left",
           .run = close_in_flight},
          {.name = "abort_connect",
           .asserts = "connections given up half-way: prompt, nothing left",
           .run = abort_connect}};
}

}  // namespace ringbolt::test
