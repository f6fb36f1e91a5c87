#include <cstdlib>

#include "nccl/tuner.h"
#include "nccl/tuner_abi.h"

// The tables of all versions of the tuner, over the pure functions of tuner.h. decide() answers success always: NCCL
// 2.28 to 2.30 fail the collective otherwise, whatever their header promises.

namespace ringbolt::nccl {
namespace {

constexpr const char* kTunerName = "Ringbolt";
constexpr const char* kTunerKnob = "RINGBOLT_NCCL_TUNER";
constexpr int kSuccess = static_cast<int>(Result::success);

// A communicator's context is the address of one of these: nothing to allocate, nor to free after NCCL dropped it.
Tuning as_it_is = Tuning::as_it_is;
Tuning ring_only = Tuning::ring_only;

namespace tuner_slot {

int init_v2(size_t, size_t nodes, Logger logger, void** context) noexcept {
  // Read for each communicator, in NCCL's own thread, which reads the environment likewise.
  const char* knob = std::getenv(kTunerKnob);
  if (!is_tuning_known(knob) && logger != nullptr) {
    constexpr int kWarn = 2;
    // NCCL_TUNING of ncclDebugLogSubSys; the level is WARN.
    constexpr unsigned long kTuning = 0x40;
    logger(kWarn, kTuning, __FILE__, __LINE__, "Ringbolt: %s=%s is not known (off, ring); taken as unset", kTunerKnob,
           knob);
  }
  *context = choose_tuning(knob, nodes) == Tuning::ring_only ? &ring_only : &as_it_is;
  return kSuccess;
}
int init_v5(void** context, uint64_t, size_t ranks, size_t nodes, Logger logger, abi::NvlinkDomains*,
            abi::TunerConstants*) noexcept {
  return init_v2(ranks, nodes, logger, context);
}

/// NCCL 2.21 shows no costs. It would take a protocol along with an algorithm, and which of them this machine has, and
/// from how many bytes on each is best, cannot be known here: both outputs stay undefined, and NCCL chooses. Its trees
/// then work by relay, only slower; NCCL_ALGO=Ring does there what later versions do by the table.
int decide_v2(void*, int, size_t, int, int, int, int*, int*, int*) noexcept { return kSuccess; }

/// The same for all collectives: what one of them cannot use is unavailable in its table already.
int decide_v3(void* context, int, size_t, int, float** table, int algorithms, int protocols, int*) noexcept {
  // Compared, never read: see above.
  if (context != &ring_only) return kSuccess;
  forbid_sparse_unfit(reinterpret_cast<float*>(table), algorithms, protocols);  // one block in truth (tuner_abi.h)
  return kSuccess;
}
int decide_v4(void* context, int collective, size_t bytes, int operations, float** table, int algorithms, int protocols,
              int, int* channels) noexcept {
  return decide_v3(context, collective, bytes, operations, table, algorithms, protocols, channels);
}

int finalize(void*) noexcept { return kSuccess; }

}  // namespace tuner_slot
}  // namespace

namespace abi {

constinit const TunerV2 ncclTunerPlugin_v2 = {
    .name = kTunerName, .init = tuner_slot::init_v2, .decide = tuner_slot::decide_v2, .finalize = tuner_slot::finalize};
constinit const TunerV3 ncclTunerPlugin_v3 = {
    .name = kTunerName, .init = tuner_slot::init_v2, .decide = tuner_slot::decide_v3, .finalize = tuner_slot::finalize};
constinit const TunerV4 ncclTunerPlugin_v4 = {
    .name = kTunerName, .init = tuner_slot::init_v2, .decide = tuner_slot::decide_v4, .finalize = tuner_slot::finalize};
constinit const TunerV5 ncclTunerPlugin_v5 = {
    .name = kTunerName, .init = tuner_slot::init_v5, .decide = tuner_slot::decide_v4, .finalize = tuner_slot::finalize};
constinit const TunerV6 ncclTunerPlugin_v6 = {.name = kTunerName,
                                              .init = tuner_slot::init_v5,
                                              .decide = tuner_slot::decide_v4,
                                              .finalize = tuner_slot::finalize,
                                              .chunk_size = nullptr};

}  // namespace abi
}  // namespace ringbolt::nccl
