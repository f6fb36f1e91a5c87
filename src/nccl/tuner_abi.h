#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/net_abi.h"

// What NCCL reads of a tuner, in the five versions that we export; see net_abi.h. NCCL looks for it in the network
// plugin's library too, so both are in one.

namespace ringbolt::nccl::abi {

/// v5 and later; we read neither this nor the constants.
struct NvlinkDomains {
  int count;
  int least_ranks;
  int most_ranks;
};
static_assert(sizeof(NvlinkDomains) == 12 && offsetof(NvlinkDomains, count) == 0);
static_assert(offsetof(NvlinkDomains, least_ranks) == 4 && offsetof(NvlinkDomains, most_ranks) == 8);

// Latencies: [kind of link][algorithm][protocol] in us; the others: [generation of GPUs][number of nodes] in GB/s.
struct TunerConstants {
  double base_latencies[7][3];
  double hardware_latencies[3][7][3];
  double most_ll[4][3];
  double most_ring_ll128[4][3];
  double most_tree_ll128[4][3];
  double most_tree[4][3];
  double most_nvls_tree[4][3];
};
static_assert(sizeof(TunerConstants) == 1152 && offsetof(TunerConstants, base_latencies) == 0);
static_assert(offsetof(TunerConstants, hardware_latencies) == 168 && offsetof(TunerConstants, most_ll) == 672);
static_assert(offsetof(TunerConstants, most_ring_ll128) == 768 && offsetof(TunerConstants, most_tree_ll128) == 864);
static_assert(offsetof(TunerConstants, most_tree) == 960 && offsetof(TunerConstants, most_nvls_tree) == 1056);

// Its table of costs is not passed: see decide_v2() in tuner_tables.cpp. `decide` may leave all outputs as they are:
// NCCL then goes by its own costs. `context` is what init() has put there, and passed to each call.
struct TunerV2 {
  const char* name;
  ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ncclResult_t (*decide)(void* context, int collective, size_t bytes, int has_collnet, int has_nvls, int operations,
                         int* algorithm, int* protocol, int* channels);
  ncclResult_t (*finalize)(void* context);
};

/// `table` is not what its type says: one float[algorithms][protocols], of which the first row begins there.
struct TunerV3 {
  const char* name;
  ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ncclResult_t (*decide)(void* context, int collective, size_t bytes, int operations, float** table, int algorithms,
                         int protocols, int* channels);
  ncclResult_t (*finalize)(void* context);
};

// is_registered: the buffers of the operation are, which v4 added.
struct TunerV4 {
  const char* name;
  ncclResult_t (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  ncclResult_t (*decide)(void* context, int collective, size_t bytes, int operations, float** table, int algorithms,
                         int protocols, int is_registered, int* channels);
  ncclResult_t (*finalize)(void* context);
};

// v5 made `context` the first output of init(), with an id that is the same on all ranks of a communicator.
struct TunerV5 {
  const char* name;
  ncclResult_t (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
                       NvlinkDomains* domains, TunerConstants* constants);
  ncclResult_t (*decide)(void* context, int collective, size_t bytes, int operations, float** table, int algorithms,
                         int protocols, int is_registered, int* channels);
  ncclResult_t (*finalize)(void* context);
};

struct TunerV6 {
  const char* name;
  ncclResult_t (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
                       NvlinkDomains* domains, TunerConstants* constants);
  ncclResult_t (*decide)(void* context, int collective, size_t bytes, int operations, float** table, int algorithms,
                         int protocols, int is_registered, int* channels);
  ncclResult_t (*finalize)(void* context);
  ncclResult_t (*chunk_size)(void* context, int collective, size_t bytes, int algorithm, int protocol, int channels,
                             size_t* chunk_bytes);  // null: NCCL's own
};

// `decide` may be called by several threads at once, each for a communicator of its own.
template <class Table>
inline constexpr bool kTunerBeginsRight = offsetof(Table, name) == 0 && offsetof(Table, init) == 8 &&
                                          offsetof(Table, decide) == 16 && offsetof(Table, finalize) == 24;
static_assert(sizeof(TunerV2) == 32 && kTunerBeginsRight<TunerV2>);
static_assert(sizeof(TunerV3) == 32 && kTunerBeginsRight<TunerV3>);
static_assert(sizeof(TunerV4) == 32 && kTunerBeginsRight<TunerV4>);
static_assert(sizeof(TunerV5) == 32 && kTunerBeginsRight<TunerV5>);
static_assert(sizeof(TunerV6) == 40 && kTunerBeginsRight<TunerV6> && offsetof(TunerV6, chunk_size) == 32);

extern "C" {
__attribute__((visibility("default"))) extern const TunerV2 ncclTunerPlugin_v2;
__attribute__((visibility("default"))) extern const TunerV3 ncclTunerPlugin_v3;
__attribute__((visibility("default"))) extern const TunerV4 ncclTunerPlugin_v4;
__attribute__((visibility("default"))) extern const TunerV5 ncclTunerPlugin_v5;
__attribute__((visibility("default"))) extern const TunerV6 ncclTunerPlugin_v6;
}

}  // namespace ringbolt::nccl::abi
