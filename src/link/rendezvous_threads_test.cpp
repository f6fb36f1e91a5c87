// Many ends at once, each with its service thread, as in processes that start together.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

/// Counts, from the service thread for others to read.
class Counter : public RendezvousSink {
 public:
  void on_ready(const std::shared_ptr<Peer>&) override { ++ready; }
  void on_offer(const std::shared_ptr<Peer>& peer, const Offer& offer, OfferFiles files) override {
    // Numbers of one sender come in order.
    uint32_t& next = next_from[peer->slot()];
    is_in_order = is_in_order && offer.source_qpn == next && mark_of(files.lane.get()) == peer->slot();
    ++next;
    ++offers;
  }
  void on_withdraw(const std::shared_ptr<Peer>&, const Withdraw&) override {}
  void on_refuse(const std::shared_ptr<Peer>&, const Refuse&) override {}
  void on_arena(const std::shared_ptr<Peer>&, const Arena&, base::UniqueFd) override {}
  void on_release(const std::shared_ptr<Peer>&, const Release&) override {}
  void on_gone(const std::shared_ptr<Peer>& peer) override {
    orderly += peer->left_orderly() ? 1 : 0;
    ++gone;  // last: the test waits for it
  }
  void on_poke() override {}
  void on_bell() override { ++bells; }

  std::atomic<int> ready{0}, offers{0}, gone{0}, orderly{0}, bells{0};
  std::atomic<bool> is_in_order{true};
  std::map<uint32_t, uint32_t> next_from;
};

struct Node {
  explicit Node(const std::string& slots)
      : table(marked_memfd(1)), rendezvous(Rendezvous::open({slots, table.get(), table.get(), kSlotCount}, seen)) {}
  void start() {
    service = std::thread([this] {
      while (!is_over.load()) {
        rendezvous->dispatch(-1);
      }
    });
  }
  void stop() {
    is_over = true;
    rendezvous->wake();
    service.join();
  }
  Counter seen;
  base::UniqueFd table;
  std::unique_ptr<Rendezvous> rendezvous;
  std::atomic<bool> is_over{false};
  std::thread service;
};

bool wait_until(const std::function<bool()>& is_done) {
  const uint64_t deadline = base::now_ns() + kPatienceNs;
  while (!is_done()) {
    if (base::now_ns() > deadline) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

TEST(RendezvousThreads, everybody_calls_everybody_at_once) {
  constexpr int kNodes = 6;
  constexpr uint32_t kOffers = 50;
  const TempFolder folder;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < kNodes; ++i) {
    nodes.push_back(std::make_unique<Node>(folder.slots()));
    nodes.back()->start();
  }
  std::vector<std::thread> callers;
  for (const auto& node : nodes) {
    callers.emplace_back([&nodes, &node] {
      const base::UniqueFd lane = marked_memfd(node->rendezvous->slot());
      for (const auto& other : nodes) {
        const auto peer = node->rendezvous->peer_at(other->rendezvous->slot());
        ASSERT_NE(peer, nullptr);
        for (uint32_t i = 0; i < kOffers; ++i) {
          Offer offer = numbered_offer(i);
          ASSERT_TRUE(peer->send(offer, lane.get()));
          peer->ring();
        }
        EXPECT_EQ(node->rendezvous->peer_at(other->rendezvous->slot()), peer);
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const auto& node : nodes) {
    EXPECT_TRUE(wait_until([&] { return node->seen.offers == kNodes * static_cast<int>(kOffers); }));
    EXPECT_TRUE(node->seen.is_in_order);
    EXPECT_EQ(node->seen.ready, kNodes);  // one peer for each process, itself among them
    EXPECT_EQ(node->seen.gone, 0);
  }
  // They leave one after the other, while the service threads go on.
  for (int i = 0; i < kNodes; ++i) {
    Node& leaving = *nodes[static_cast<size_t>(i)];
    leaving.is_over = true;
    leaving.rendezvous->leave();
    leaving.service.join();
    for (int j = i + 1; j < kNodes; ++j) {
      const Counter& seen = nodes[static_cast<size_t>(j)]->seen;
      EXPECT_TRUE(wait_until([&] { return seen.gone == i + 1; }));
      EXPECT_EQ(seen.orderly, i + 1);
    }
  }
}

TEST(RendezvousThreads, callers_race_with_comers_and_goers) {
  const TempFolder folder;
  Node stays(folder.slots());
  stays.start();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      const base::UniqueFd lane = marked_memfd(1);
      while (!is_over) {
        for (uint32_t slot = 0; slot < 8; ++slot) {
          if (const auto peer = stays.rendezvous->peer_at(slot)) {
            peer->send(numbered_offer(1), lane.get());
            peer->ring();
            peer->is_stopped();
          }
        }
      }
    });
  }
  for (int round = 0; round < 60; ++round) {
    Counter seen;
    const base::UniqueFd table = marked_memfd(1);
    const auto comer = Rendezvous::open({folder.slots(), table.get(), table.get(), 8}, seen);
    const auto peer = comer->peer_at(stays.rendezvous->slot());
    ASSERT_NE(peer, nullptr);
    ASSERT_TRUE(wait_until([&] {
      comer->dispatch(1);
      return seen.ready > 0 && peer->is_ready();
    }));
  }
  is_over = true;
  for (std::thread& caller : callers) {
    caller.join();
  }
  stays.stop();
  EXPECT_EQ(files_in(folder.slots()).size(), 2U);
}

}  // namespace
}  // namespace ringbolt::link
