#include "cases.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

/// All pairs, all channels, then a few messages by each.
void connect_all(Rank& rank, const Manner& manner) {
  rank.plugin().time_data_calls_fairly();
  std::vector<Link> links = open_links(rank, peers_of(rank), rank.options().channels, manner);
  greet(rank, links);
  rank.barrier();
  close_links(rank, links);
}

void simultaneous(Rank& rank) { connect_all(rank, {}); }
void crowded(Rank& rank) { connect_all(rank, {.limit_s = 60}); }
void accept_first(Rank& rank) { connect_all(rank, {.connect_after_s = 0.4}); }
void connect_first(Rank& rank) { connect_all(rank, {.accept_after_s = 0.4}); }

/// The others have its handles and wait, while it loads its model.
void late_peer(Rank& rank) {
  const double late = rank.id() == rank.size() - 1 ? 3 : 0;
  connect_all(rank, {.connect_after_s = late, .accept_after_s = late});
}

/// One half of the ranks only accepts at first, the other half only connects.
void opposed(Rank& rank) {
  const bool accepts = rank.id() % 2 == 0;
  connect_all(rank, {.connect_after_s = accepts ? 0.4 : 0, .accept_after_s = accepts ? 0 : 0.4});
}

/// By external suites: a second accept on the same listener, with the handle that was given once.
void reused_listener(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = listen_for(rank, {1 - rank.id()}, 1);
  exchange_handles(rank, links);
  const Handle theirs = links[0].theirs;  // as it was before connect kept anything in it
  std::vector<Link> both(2, links[0]);
  both[1].channel = 1;
  both[1].theirs = theirs;
  for (Link& link : both) {
    const uint64_t begin = now_ns();
    while (link.send == nullptr || link.receive == nullptr) {
      if (link.send == nullptr) {
        expect(rank.plugin().connect(rank.context(), 0, link.theirs, &link.send), "connect");
      }
      if (link.receive == nullptr) {
        expect(rank.plugin().accept(link.listener, &link.receive), "accept");
      }
      if (seconds_since(begin) > 5) {
        throw Failure("no connection number " + std::to_string(link.channel + 1) + " with one listener");
      }
      yield_now();
    }
    rank.barrier();  // else a fast rank's second could come before the other one's first
  }
  expect(rank.plugin().close_listen(both[0].listener), "closeListen");
  both[0].listener = both[1].listener = nullptr;
  greet(rank, both);
  rank.barrier();
  close_links(rank, both);
}

/// Channels come and go while their neighbours carry on: none may get the place of another.
void replaced_channel(Rank& rank) {
  if (rank.id() > 1) {
    return;
  }
  std::vector<Link> links = open_links(rank, {1 - rank.id()}, 8);
  for (size_t turn = 0; turn < 6; ++turn) {
    const auto gone = links.begin() + static_cast<std::ptrdiff_t>(turn * 3 % 8);
    std::vector<Link> closed = {*gone};
    const int channel = gone->channel;
    rank.barrier();
    close_links(rank, closed);
    std::vector<Link> others = links;
    others.erase(others.begin() + (gone - links.begin()));
    greet(rank, others);
    std::vector<Link> made = open_links(rank, {1 - rank.id()}, 1);
    *gone = made[0];
    gone->channel = channel;
    greet(rank, links);
  }
  rank.barrier();
  close_links(rank, links);
}

}  // namespace

std::vector<Case> connect_cases() {
  return {
      {.name = "connect",
       .asserts = "all ordered pairs and channels at once; each call below 1 ms",
       .run = simultaneous,
       .limit = CallLimit::clock},
      {.name = "crowded",
       .asserts = "as connect, of more ranks than processors: each call uses below 1 ms of one, and none sleeps",
       .run = crowded,
       .limit = CallLimit::processor,
       .limit_s = 90},
      {.name = "accept_first",
       .asserts = "accept is called long before connect",
       .run = accept_first,
       .limit = CallLimit::clock},
      {.name = "connect_first",
       .asserts = "connect is called long before accept",
       .run = connect_first,
       .limit = CallLimit::clock},
      {.name = "opposed",
       .asserts = "half of the ranks accept first, the others connect first",
       .run = opposed,
       .limit = CallLimit::clock},
      {.name = "late_peer", .asserts = "one rank calls neither for 3 s", .run = late_peer, .limit = CallLimit::clock},
      {.name = "reused_listener", .asserts = "one listener accepts two connections", .run = reused_listener},
      {.name = "replaced_channel",
       .asserts = "closing and opening one of 8 channels leaves the others alone",
       .run = replaced_channel}};
}

}  // namespace ringbolt::test
