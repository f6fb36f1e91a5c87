// Between link rates as the InfiniBand specification numbers them, multiples of its base rate, and Mbit/s.

#include <infiniband/verbs.h>

#include <array>

#undef ibv_rate_to_mult

namespace {

struct Rate {
  ibv_rate rate;
  int multiple;  // of 2.5 Gbit/s, rounded down as everybody does; 0: none was ever given
  int mbps;      // on the wire
};

// The rates from 14 on use 64b/66b coding, hence their odd figures.
constexpr std::array kRates = {
    Rate{IBV_RATE_2_5_GBPS, 1, 2500},     Rate{IBV_RATE_5_GBPS, 2, 5000},         Rate{IBV_RATE_10_GBPS, 4, 10000},
    Rate{IBV_RATE_20_GBPS, 8, 20000},     Rate{IBV_RATE_30_GBPS, 12, 30000},      Rate{IBV_RATE_40_GBPS, 16, 40000},
    Rate{IBV_RATE_60_GBPS, 24, 60000},    Rate{IBV_RATE_80_GBPS, 32, 80000},      Rate{IBV_RATE_120_GBPS, 48, 120000},
    Rate{IBV_RATE_14_GBPS, 0, 14062},     Rate{IBV_RATE_56_GBPS, 0, 56250},       Rate{IBV_RATE_112_GBPS, 0, 112500},
    Rate{IBV_RATE_168_GBPS, 0, 168750},   Rate{IBV_RATE_25_GBPS, 0, 25781},       Rate{IBV_RATE_100_GBPS, 0, 103125},
    Rate{IBV_RATE_200_GBPS, 0, 206250},   Rate{IBV_RATE_300_GBPS, 0, 309375},     Rate{IBV_RATE_28_GBPS, 11, 28125},
    Rate{IBV_RATE_50_GBPS, 20, 53125},    Rate{IBV_RATE_400_GBPS, 160, 425000},   Rate{IBV_RATE_600_GBPS, 240, 637500},
    Rate{IBV_RATE_800_GBPS, 320, 850000}, Rate{IBV_RATE_1200_GBPS, 480, 1275000},
};

}  // namespace

int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& known : kRates) {
    if (known.rate == rate && known.multiple != 0) {
      return known.multiple;
    }
  }
  return -1;
}

ibv_rate mult_to_ibv_rate(int mult) {
  for (const Rate& known : kRates) {
    if (known.multiple == mult && mult != 0) {
      return known.rate;
    }
  }
  return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& known : kRates) {
    if (known.rate == rate) {
      return known.mbps;
    }
  }
  return -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& known : kRates) {
    if (known.mbps == mbps) {
      return known.rate;
    }
  }
  return IBV_RATE_MAX;
}
