#include "nccl/pending.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringbolt::nccl {
namespace {

class IdleCircuit final : public circuit::Circuit {
 public:
  IdleCircuit() : Circuit(1, 2, "peer", false) {}
  void abandon() override RINGBOLT_REQUIRES(lock) {}
  void progress() override RINGBOLT_REQUIRES(lock) {}
  void progress_idle() override RINGBOLT_REQUIRES(lock) {}

 private:
  void let_go() override RINGBOLT_REQUIRES(lock) {}
};

TEST(Pending, of_a_thread_that_ends_lets_go_of_its_circuits) {
  const auto circuit = std::make_shared<IdleCircuit>();
  std::thread([&] {
    pending_of_this_thread().keep(circuit);
    EXPECT_TRUE(circuit->is_kept);
  }).join();
  EXPECT_FALSE(circuit->is_kept) << "another thread may keep it";
  EXPECT_EQ(circuit.use_count(), 1);
}

}  // namespace
}  // namespace ringbolt::nccl
