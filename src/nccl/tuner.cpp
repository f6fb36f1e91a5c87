#include "nccl/tuner.h"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace ringbolt::nccl {
namespace {

constexpr size_t kMostNodesAllJoined = 3;  // by two ports each: a ring of three is a full mesh
constexpr float kUnavailable = -1.0F;

// By NCCL's numbers, the same in all versions: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT. Ring sends
// to neighbours alone, and NVLS within a machine.
constexpr std::array<bool, 7> kIsUnfit = {true, false, true, true, false, true, true};

bool is_unfit(size_t algorithm) { return algorithm < kIsUnfit.size() && kIsUnfit[algorithm]; }

/// NCCL takes the smallest cost that is not negative. One that is no finite number loses against NCCL's start value.
bool is_usable(float cost) { return std::isfinite(cost) && cost >= 0; }

std::string_view text_of(const char* knob) { return knob == nullptr ? std::string_view() : std::string_view(knob); }

}  // namespace

Tuning choose_tuning(const char* knob, size_t nodes) noexcept {
  if (text_of(knob) == "off") return Tuning::as_it_is;
  if (text_of(knob) == "ring") return Tuning::ring_only;
  return nodes > kMostNodesAllJoined ? Tuning::ring_only : Tuning::as_it_is;
}

bool is_tuning_known(const char* knob) noexcept {
  const std::string_view text = text_of(knob);
  return text.empty() || text == "off" || text == "ring";
}

void forbid_sparse_unfit(float* table, int algorithms, int protocols) noexcept {
  if (table == nullptr || algorithms <= 0 || protocols <= 0) return;
  const auto width = static_cast<size_t>(protocols);
  const std::span<float> costs(table, static_cast<size_t>(algorithms) * width);
  bool is_one_left = false;
  // Two passes: nothing is written before it is certain that something is left.
  for (size_t i = 0; i < costs.size(); ++i) is_one_left = is_one_left || (!is_unfit(i / width) && is_usable(costs[i]));
  if (!is_one_left) return;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (is_unfit(i / width)) costs[i] = kUnavailable;
  }
}

}  // namespace ringbolt::nccl
