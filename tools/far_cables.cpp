#include "far_cables.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "heat_map.h"

namespace ringbolt::tools {
namespace {

// docs/command.md has the reasons.
constexpr double kFarFromStated = 0.5;
constexpr double kReached = 0.8;
constexpr double kFarFromOthers = 0.25;
constexpr double kFarLatency = 8;
constexpr double kFarLatencyUs = 100;
constexpr double kSureGbps = 0.5;
constexpr double kMostStarved = 0.7;
constexpr double kMostStarvedLatency = 0.95;
constexpr uint64_t kLeastBytes = 1U << 20U;
constexpr uint64_t kBurst = 64;
constexpr size_t kLeastLike = 2;
constexpr int kMoreLooks = 3;

bool is_measured(const Direction& one) {
  return one.cable != Direction::kNoCable && one.state == Direction::State::kMeasured;
}

double stated_gbps(const cluster::Cluster& model, uint32_t cable) {
  const cluster::Cable& stated = model.cables[cable];
  return stated.rate_mbps != 0 ? stated.rate_mbps / 1000.0 : stated.speed_gbps;
}

/// Whether cables move so evenly that the best of them says what another could do: memory does not.
bool is_even(const cluster::Cluster& model) { return model.kind != cluster::Kind::emulated; }

bool are_alike(const cluster::Cluster& model, uint32_t a, uint32_t b) {
  return model.cables[a].speed_gbps == model.cables[b].speed_gbps &&
         model.cables[a].rate_mbps == model.cables[b].rate_mbps;
}

/// The middle one; of two the one that accuses less.
double median(std::vector<double> figures, bool takes_lower) {
  std::ranges::sort(figures);
  const size_t half = figures.size() / 2;
  return figures[figures.size() % 2 == 0 && takes_lower ? half - 1 : half];
}

/// Of the processor time that it could have used. While a program waits for a processor a cable may do so, too: never
/// so little that a slow cable would be taken for a fast one.
double share_had(double starved, double most_starved) { return 1 - std::clamp(starved, 0.0, most_starved); }

/// The cable to hold a suspect against when both are measured again: of its like, or else of all, the middle one.
std::optional<uint32_t> reference_for(const cluster::Cluster& model, const std::vector<Direction>& all,
                                      uint32_t suspect, const std::set<uint32_t>& suspects) {
  std::vector<const Direction*> others;
  for (const bool is_alike : {true, false}) {
    for (const Direction& one : all) {
      if (is_measured(one) && one.cable != suspect && !suspects.contains(one.cable) &&
          are_alike(model, one.cable, suspect) == is_alike) {
        others.push_back(&one);
      }
    }
    if (!others.empty()) {
      std::ranges::sort(others, {}, &Direction::bandwidth_gbps);
      return others[others.size() / 2]->cable;
    }
  }
  return std::nullopt;
}

/// As far as one cable measured just now can tell.
Yardstick yardstick_now(const cluster::Cluster& model, uint32_t suspect, const Yardstick& before,
                        const std::vector<Direction>& reference) {
  Yardstick now{before.stated_gbps, 0, 0, 0};
  for (const Direction& one : reference) {
    if (is_measured(one)) {
      now.best_gbps = is_even(model) ? std::max(now.best_gbps, one.bandwidth_gbps) : 0;
      if (before.like_gbps > 0 && are_alike(model, one.cable, suspect)) {
        now.like_gbps = now.like_gbps > 0 ? std::min(now.like_gbps, one.bandwidth_gbps) : one.bandwidth_gbps;
        now.like_latency_us = std::max(now.like_latency_us, one.latency_us);
      }
    }
  }
  return now;
}

bool is_same(const Direction& a, const Direction& b) { return a.cable == b.cable && a.from == b.from && a.to == b.to; }

}  // namespace

Yardstick yardstick_of(const cluster::Cluster& model, const std::vector<Direction>& all, const Direction& one) {
  Yardstick yardstick{stated_gbps(model, one.cable), 0, 0, 0};
  std::vector<double> rates;
  std::vector<double> latencies;
  std::set<uint32_t> like;
  for (const Direction& other : all) {
    if (!is_measured(other) || other.cable == one.cable) {
      continue;
    }
    yardstick.best_gbps = is_even(model) ? std::max(yardstick.best_gbps, other.bandwidth_gbps) : 0;
    if (are_alike(model, other.cable, one.cable)) {
      like.insert(other.cable);
      rates.push_back(other.bandwidth_gbps);
      latencies.push_back(other.latency_us);
    }
  }
  if (like.size() >= kLeastLike) {
    yardstick.like_gbps = median(std::move(rates), true);
    yardstick.like_latency_us = median(std::move(latencies), false);
  }
  return yardstick;
}

std::string far_text(const Direction& one, const Yardstick& yardstick) {
  const double gbps = one.bandwidth_gbps / share_had(one.starved_share, kMostStarved);
  const double latency_us = one.latency_us * share_had(one.starved_latency_share, kMostStarvedLatency);
  const bool has_rate = std::min(one.verified_bytes, kBurst * one.message_bytes) >= kLeastBytes;
  const bool can_reach = yardstick.best_gbps >= yardstick.stated_gbps * kReached;
  const double within_reach =
      can_reach ? yardstick.stated_gbps : std::max(yardstick.best_gbps * kFarFromOthers, kSureGbps);
  if (has_rate && gbps < std::min(yardstick.stated_gbps * kFarFromStated, within_reach)) {
    return fmt::format("{} Gb/s, and its stated rate is {} Gb/s", figure_text(one.bandwidth_gbps),
                       figure_text(yardstick.stated_gbps));
  }
  if (has_rate && gbps < yardstick.like_gbps * kFarFromOthers) {
    return fmt::format("{} Gb/s, and like cables have {} Gb/s", figure_text(one.bandwidth_gbps),
                       figure_text(yardstick.like_gbps));
  }
  if (yardstick.like_latency_us > 0 && latency_us > yardstick.like_latency_us * kFarLatency &&
      latency_us > yardstick.like_latency_us + kFarLatencyUs) {
    return fmt::format("a latency of {} us, and like cables have {} us", figure_text(one.latency_us),
                       figure_text(yardstick.like_latency_us));
  }
  return "";
}

void judge_cables(const cluster::Cluster& model, std::vector<Direction>& directions,
                  const std::function<std::vector<Direction>(uint32_t cable)>& measure_again) {
  std::vector<Yardstick> yardsticks(directions.size());
  std::set<uint32_t> suspects;
  for (size_t i = 0; i < directions.size(); ++i) {
    Direction& one = directions[i];
    if (is_measured(one)) {
      yardsticks[i] = yardstick_of(model, directions, one);
      one.far = far_text(one, yardsticks[i]);
      if (!one.far.empty()) {
        suspects.insert(one.cable);
      }
    }
  }
  for (const uint32_t suspect : suspects) {
    const std::optional<uint32_t> reference = reference_for(model, directions, suspect, suspects);
    const auto is_accused = [&](const Direction& one) { return one.cable == suspect && !one.far.empty(); };
    for (int look = 0; look < kMoreLooks && std::ranges::any_of(directions, is_accused); ++look) {
      const std::vector<Direction> by = reference ? measure_again(*reference) : std::vector<Direction>();
      for (const Direction& now : measure_again(suspect)) {
        for (size_t i = 0; i < directions.size(); ++i) {
          if (is_accused(directions[i]) && is_same(directions[i], now)) {
            directions[i].far = is_measured(now) ? far_text(now, yardstick_now(model, suspect, yardsticks[i], by)) : "";
          }
        }
      }
    }
  }
}

}  // namespace ringbolt::tools
