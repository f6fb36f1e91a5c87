#include "verbs/codes.h"

#include <array>

namespace ringbolt::verbs {
namespace {

struct Code {
  uint8_t code;
  double value;
};
// Codes of ibv_port_attr::active_width: 1, 4, 8, 12 and 2 lanes.
constexpr std::array kLanes = {Code{1, 1}, Code{2, 4}, Code{4, 8}, Code{8, 12}, Code{16, 2}};
// Of active_speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR. Nominal rates, as tools print them.
constexpr std::array kLaneGbps = {Code{1, 2.5}, Code{2, 5},   Code{4, 10},  Code{8, 10},
                                  Code{16, 14}, Code{32, 25}, Code{64, 50}, Code{128, 100}};

template <class Table>
// 0 for a code that no table knows: the rate is then 0, "unknown".
double value_of(const Table& table, uint8_t code) {
  for (const Code& one : table) {
    if (one.code == code) {
      return one.value;
    }
  }
  return 0;
}

}  // namespace

double rate_gbps(uint8_t width, uint8_t speed) { return value_of(kLanes, width) * value_of(kLaneGbps, speed); }

}  // namespace ringbolt::verbs
