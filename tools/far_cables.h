#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "measurement.h"

namespace ringbolt::tools {

/// What the figures of one direction are held against; 0: there is no such figure.
struct Yardstick {
  double stated_gbps = 0;      ///< of the cable: its rate, or else its speed
  double best_gbps = 0;        ///< of the directions of all other cables, but of memory: what these machines can move
  double like_gbps = 0;        ///< median over the directions of like cables, if there are two and more others
  double like_latency_us = 0;  ///< likewise
};

/// Of `one`, among `all` that were measured. Like cables have the same stated speed and rate. Pure. Thread-safe.
Yardstick yardstick_of(const cluster::Cluster& model, const std::vector<Direction>& all, const Direction& one);

/// "0.13 Gb/s, and its stated rate is 2 Gb/s"; empty: the figures are not far from the yardstick. docs/command.md
/// defines far. A figure of programs that waited for a processor counts as if they had not. Pure. Thread-safe.
std::string far_text(const Direction& one, const Yardstick& yardstick);

/// Sets `far` of the directions over cables that stay far when their cable is measured again by `measure_again`, a few
/// times in turns with a cable that is not suspected.
void judge_cables(const cluster::Cluster& model, std::vector<Direction>& directions,
                  const std::function<std::vector<Direction>(uint32_t cable)>& measure_again);

}  // namespace ringbolt::tools
