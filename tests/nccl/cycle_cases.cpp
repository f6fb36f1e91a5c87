#include "cases.h"
#include "census.h"
#include "flow.h"

namespace ringbolt::test {
namespace {

void* new_context(Rank& rank, uint64_t id) {
  void* context = nullptr;
  expect(rank.plugin().init(&context, id), "init");
  int devices = 0;
  expect(rank.plugin().devices(&devices), "devices");
  return context;
}

/// Two communicators, of which the first is split: a child shares its context and outlives its own comms.
void contexts_once(Rank& rank, uint64_t turn) {
  void* const first = new_context(rank, 2 * turn);
  void* const second = new_context(rank, 2 * turn + 1);
  rank.set_context(first);
  std::vector<Link> parent = open_links(rank, peers_of(rank), 1);
  std::vector<Link> child = open_links(rank, peers_of(rank), 1);
  rank.set_context(second);
  std::vector<Link> other = open_links(rank, peers_of(rank), 1);
  greet(rank, parent);
  rank.barrier();
  close_links(rank, parent);
  greet(rank, child);
  rank.barrier();
  close_links(rank, child);
  promptly("finalize", [&] { return rank.plugin().finalize(first); });
  greet(rank, other);
  rank.barrier();
  close_links(rank, other);
  promptly("finalize", [&] { return rank.plugin().finalize(second); });
  rank.end_progress();
  rank.barrier();
}

std::string text_of(const Census& census) {
  return std::to_string(census.threads) + " threads, " + std::to_string(census.descriptors) + " descriptors, " +
         std::to_string(census.mappings) + " mappings";
}

void check_growth(Rank& rank, const Census& before, const std::string& what) {
  const int cycles = rank.options().cycles;
  // One mapping in every second cycle is a leak; the C library keeps a few whatever the cycles.
  if (const std::string grown = growth_since(before, 4 + cycles / 2); !grown.empty()) {
    throw Failure("grown in " + std::to_string(cycles) + " " + what + ": " + grown);
  }
  if (rank.id() == 0) {
    rank.note(std::to_string(cycles) + " " + what + ", " + text_of(take_census()));
  }
}

void contexts(Rank& rank) {
  expect(rank.plugin().finalize(rank.context()), "finalize");  // between cycles there is none
  contexts_once(rank, 0);                                      // the first turns grow what is made once
  contexts_once(rank, 1);
  const Census before = take_census();
  for (int cycle = 0; cycle < rank.options().cycles; ++cycle) {
    contexts_once(rank, static_cast<uint64_t>(cycle) + 2);
  }
  check_growth(rank, before, "cycles of init and finalize");
  rank.set_context(new_context(rank, 0));  // for the end of the case to finalize
}

/// The library's count of users falls to nothing in between, unless it holds itself.
void reload_once(Rank& rank) {
  rank.load();
  std::vector<Link> links = open_links(rank, peers_of(rank), 1);
  greet(rank, links);
  rank.barrier();
  close_links(rank, links);
  rank.unload();
  rank.barrier();
}

void reload(Rank& rank) {
  const Census untouched = take_census();
  rank.load();
  const bool has_finalize = rank.plugin().has_finalize();
  rank.unload();
  reload_once(rank);
  const Census before = take_census();
  for (int cycle = 0; cycle < rank.options().cycles; ++cycle) {
    reload_once(rank);
  }
  check_growth(rank, before, "cycles of dlopen and dlclose");
  // After finalize the library may be unmapped: no thread of it may be left. What it can keep are mappings.
  if (const int now = take_census().threads; has_finalize && now > untouched.threads) {
    throw Failure(std::to_string(now - untouched.threads) + " threads left after finalize and dlclose");
  }
}

/// Ten connections a cycle to each peer and from it: ten thousand with --cycles 1000.
void connections(Rank& rank) {
  constexpr int kAtATime = 10;
  const auto once = [&] {
    std::vector<Link> links = open_links(rank, peers_of(rank), kAtATime);
    greet(rank, links);
    rank.barrier();
    close_links(rank, links);
    rank.barrier();
  };
  for (int warmups = 0; warmups < 3; ++warmups) {
    once();
  }
  sleep_s(0.5);  // what closing leaves to do is done
  const Census before = take_census();
  for (int cycle = 0; cycle < rank.options().cycles; ++cycle) {
    once();
  }
  sleep_s(0.5);
  check_growth(rank, before, "times ten connections");
}

}  // namespace

std::vector<Case> cycle_cases() {
  return {{.name = "connections",
           .asserts = "connections opened and closed leave no thread, descriptor or mapping",
           .run = connections,
           .limit_s = 300},
          {.name = "contexts",
           .asserts = "init and finalize, with contexts shared and side by side, leave nothing",
           .run = contexts,
           .limit_s = 60},
          {.name = "reload",
           .asserts = "dlopen and dlclose leave no thread, descriptor or mapping",
           .run = reload,
           .limit_s = 60,
           .loads_itself = true}};
}

}  // namespace ringbolt::test
