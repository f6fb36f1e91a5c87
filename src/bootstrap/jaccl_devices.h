#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"

namespace ringbolt::bootstrap {

/// Which devices lead from each rank to each other one: what JACCL and MLX read from the file that JACCL_IBV_DEVICES
/// names. cells[i][j]: rank i's devices towards j, one per rail; none: no connection. A JACCL ring leaves out cables
/// that it does not use, so none is not the same as no cable.
struct JacclDevices {
  std::vector<std::vector<std::vector<std::string>>> cells;  ///< [n_ranks][n_ranks][rails]

  uint32_t n_ranks() const { return static_cast<uint32_t>(cells.size()); }
  friend bool operator==(const JacclDevices&, const JacclDevices&) = default;
};

inline constexpr size_t kMaxMlxRanks = 1024;
inline constexpr size_t kMaxMlxRails = 64;
/// No file is longer.
inline constexpr size_t kMaxMlxFileBytes = size_t{4} << 20;

/// Reads [[null, "rdma_en2"], [["rdma_en3"], null]]: cells are null, a name or a list of names. Any bytes are safe.
/// Refuses, by place ("[2][1]"): what is not square, a device of a rank towards itself, a pair with different numbers
/// of rails in both directions, a file in which all is null (but for the [[null]] of one rank), and an empty list.
/// Pure. Thread-safe.
base::Parsed<JacclDevices> parse_jaccl_devices(std::string_view text);

/// In the same form, a name alone for one rail. What it writes parses to the same.
std::string to_text(const JacclDevices& devices);

/// What is allowed and probably wrong: a device that occurs twice in a row, unless it leads everywhere. Each line names
/// the place.
std::vector<std::string> warnings(const JacclDevices& devices);

/// Empty, or what is wrong with them, as parse_jaccl_devices() refuses it; `row` and `column` say how places are
/// written: "hosts[{}].rdma[{}]".
std::string problem_of(const JacclDevices& devices, std::string_view place_format);

}  // namespace ringbolt::bootstrap
